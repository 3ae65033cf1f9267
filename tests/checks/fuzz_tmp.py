import random, sys, numpy as np
from hb_machine import Script
from test_oracle_tmp import hb

def random_script(rng):
    ranks = rng.randint(2, 4)
    edges = []
    cpr = rng.choice((1, 1, 2))
    s = Script(edges=edges)
    threads = []
    two = rng.random() < .3
    for r in range(ranks):
        for c in range(rng.randint(1, cpr)):
            threads.append(s.core(r, c, group=r))
    if two:
        linked = rng.random() < .7
        for r in range(ranks):
            if linked: edges.append((r, 100 + r))
            for c in range(rng.randint(1, cpr)):
                threads.append(s.core(r, c, group=100 + r, launch=1))
        s.edges = edges
    cells = rng.randint(1, 2)
    values = {}
    sync = rng.random() < .5
    pset, pneg, peq = rng.choice((0, .1, .3)), rng.choice((0, .1, .3)), rng.choice((0, .3))
    owner = {}
    single = rng.random() < .4
    for i in range(rng.randint(8, 40)):
        half = len(threads)//2 if two else len(threads)
        t = rng.choice(threads)
        r = t.spec.rank
        what = rng.random()
        if what < .25:
            t.write("m", 0)
        elif what < .65:
            p = rng.randrange(ranks); cell = rng.randrange(cells)
            if single and owner.setdefault((p, cell), t) is not t and rng.random() < .9: continue
            if rng.random() < pset:
                v = rng.choice((0, 1, 2, 3, 1)); t.set(p, cell, v); values[p, cell] = v
            else:
                v = rng.choice((1, 1, 1, 2))
                if rng.random() < pneg: v = -v
                t.notify(p, cell, v); values[p, cell] = values.get((p, cell), 0) + v
        else:
            cell = rng.randrange(cells)
            v = values.get((r, cell), 0)
            t.wait(cell, v if rng.random() < .6 else rng.randint(0, 2), equal=rng.random() < peq)
        if sync and rng.random() < .1:
            for u in threads:
                if u.spec.group == t.spec.group: u.sync()
    for t in threads: t.write("m", 0)
    return s

def check(s, stats, n=40):
    for seed in range(6):
        if s.run(seed)[0]: break
    else: return
    m = None
    good = [seed]
    for sd in range(7, 10):
        if s.run(sd)[0]: good.append(sd)
    for sd in good:
        s.run(sd)
        p, c = hb(s)
        rows = np.array(p.access_row); col = c.column_of[rows]; seg = np.array(p.segment_of)[rows]
        n_ = c.matrix[rows[:, None], col[None, :]].T >= seg[:, None]
        if m is not None and not (m == n_).all():
            stats['differs'] = stats.get('differs', 0) + 1
            return "schedule dependent", sd, good[0]
        m = n_
    stats['programs'] = stats.get('programs', 0) + 1
    stats['passes'] = max(stats.get('passes', 0), c.passes)
    acc = [(t.index, k) for t, core in zip(p.threads, s.cores) for k, op in enumerate(core.ops) if op.kind == 'write']
    claims = [(i, j) for i in range(len(acc)) for j in range(len(acc)) if acc[i][0] != acc[j][0] and m[i, j]]
    stats['claims'] = stats.get('claims', 0) + len(claims)
    ops = [s.cores[t].ops[k] for t, k in acc]
    for sd in range(n):
        s.run(sd + 100)
        for i, j in claims:
            if ops[j].when >= 0 and not 0 <= ops[i].when < ops[j].when:
                return "violated", acc[i], acc[j], sd
    by = {}
    for i, j in claims: by.setdefault(i, []).append(j)
    for i, js in by.items():
        for sd in range(3):
            s.run(sd + 1000, withheld=acc[i])
            for j in js:
                if ops[j].when >= 0: return "violated withheld", acc[i], acc[j], sd

if __name__ == "__main__":
    stats = {}; nbad = 0
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        rng = random.Random(seed)
        s = random_script(rng)
        bad = check(s, stats)
        if bad:
            nbad += 1
            print(seed, bad)
            if nbad < 3:
              for k, c in enumerate(s.cores):
                print(k, tuple(c.spec), [((o.kind+('!' if getattr(o,'replaces',0) else '')+('=' if getattr(o,'equal',0) else '')), *getattr(o,'cell',()), getattr(o,'value',None)) for o in c.ops], s.edges)
            if nbad > 5: break
    print(stats)
