exec(open('/tmp/p48/planit.py').read().split('heap={}')[0])
for l in open(sys.argv[1]):
    plan,pm,mesh,cfg=run(l.replace('_128','').replace('KEEP','KEEP'))
    print(l.split()[0:2],'gen-kept',(plan.generate-plan.kept)/1e9,'sw',plan.sampler_weights/1e9,'cache',plan.cache/1e9,'scratch',plan.scratch/1e9)
