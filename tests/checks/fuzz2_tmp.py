import random, sys
from fuzz_tmp import random_script
stats = {}
bad = 0
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    rng = random.Random(seed)
    s = random_script(rng)
    # make data accesses conflict sometimes, plain accesses to cells sometimes
    for c in s.cores:
        for op in c.ops:
            if op.kind == "write":
                x = rng.random()
                if x < .4: op.kind = "read"
                y = rng.random()
                if y < .15:
                    op.place = ("signal", c.spec.rank, 64*rng.randrange(2), 4, 1, 0); 
                else: op.place = ("m", rng.randrange(2), 16*rng.randrange(3), rng.choice((16,32)), rng.choice((1,2)), 48)
                op.at = f"{op.kind}{op.place[2]}"
    good, hang = [], 0
    plainw = any(op.kind == "write" and op.place[0] == "signal" for c in s.cores for op in c.ops)
    for sd in range(40):
        done, _ = s.run(sd)
        if done: good.append(sd)
        else: hang += 1
    if not good: continue
    stats['programs'] = stats.get('programs', 0) + 1
    vs = [{f.verdict for f in s.check(sd, kept=rng.random() < 0)} for sd in good[:5]]
    if any(v != vs[0] for v in vs[1:]):
        bad += 1
        other = next(v for v in vs if v != vs[0])
        print(seed, "verdict differs", len(vs[0] ^ other), list(vs[0] ^ other)[:2])
    kinds = {v[0] for v in vs[0] if v[1] == "error"}
    stuck = kinds & {"overshoot", "lost-credit"}
    if hang and not stuck:
        if plainw: stats['hang-plain'] = stats.get('hang-plain', 0) + 1
        else:
            bad += 1
            print(seed, "hangs without finding", hang, kinds)
    if stuck and not hang: stats['finding without hang'] = stats.get('finding without hang', 0) + 1
    if stuck and hang: stats['finding and hang'] = stats.get('finding and hang', 0) + 1
    for k in {v[0:2] for v in vs[0]}: stats[k] = stats.get(k, 0) + 1
    if bad > 6: break
print(stats)
