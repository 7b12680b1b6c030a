"""Methods that give credit to turns, on episodes of KeyDoor."""
