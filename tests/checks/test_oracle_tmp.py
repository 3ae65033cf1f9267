import random, sys
from hb_machine import Script
from a2a3sim.checks.clocks import Clocks
from a2a3sim.checks.plain import mark_plain_accesses
import numpy as np

def random_script(rng, cores_per_rank=1, negative_own=False):
    ranks = rng.randint(2, 4); focus=rng.random()
    s = Script()
    threads = []
    for r in range(ranks):
        for c in range(rng.randint(1, cores_per_rank)):
            threads.append(s.core(r, c))
    cells = rng.randint(1, 2)
    sync = cores_per_rank > 1 and rng.random() < .5
    # grow in a possible schedule so that most programs come to their end
    values = {}
    for _ in range(rng.randint(8, 40)):
        t = rng.choice(threads)
        r = t.spec.rank
        what = rng.random()
        if what < .3:
            t.write("m", 0)
        elif what < .7:
            p = rng.randrange(ranks)
            cell = rng.randrange(cells)
            v = rng.choice((1, 1, 1, 2))
            if negative_own and p == r and rng.random() < .5: v = -v
            t.notify(p, cell, v)
            values[p, cell] = values.get((p, cell), 0) + v
        else:
            cell = rng.randrange(cells)
            v=values.get((r,cell),0); t.wait(cell, v if rng.random()<focus else rng.randint(min(1,v),max(v,1) if v>0 else v) if v>0 else v)
        if sync and rng.random() < .1:
            for u in threads:
                if u.spec.rank == r: u.sync()
    for t in threads: t.write("m", 0)
    return s

def hb(s):
    p = s.program()
    mark_plain_accesses(p)
    c = Clocks(p)
    return p, c

def check(s, stats, exact=True):
    done, _ = s.run(0)
    if not done: return
    mats = []
    for seed in range(2):
        s.run(seed+1)
        p, c = hb(s)
        rows = np.array(p.access_row); col = c.column_of[rows]; seg = np.array(p.segment_of)[rows]
        mats.append(c.matrix[rows[:, None], col[None, :]].T >= seg[:, None])   # [i,j]: i before j
        stats['passes'] = max(stats.get('passes', 0), c.passes)
    assert (mats[0] == mats[1]).all()
    m = mats[0]
    acc = [(t.index, k) for t, core in zip(p.threads, s.cores) for k, op in enumerate(core.ops) if op.kind == 'write']
    assert len(acc) == len(rows)
    for i, (ti, ki) in enumerate(acc):
        _, at = s.run(5, withheld=(ti, ki))
        for j, (tj, kj) in enumerate(acc):
            if ti == tj: continue
            stats['pairs'] = stats.get('pairs', 0) + 1
            want = at[tj] <= kj
            if m[i, j] and not want:
                stats['unsound'] = stats.get('unsound', 0) + 1
                return "unsound", (ti, ki), (tj, kj)
            if want and not m[i, j]:
                stats['imprecise'] = stats.get('imprecise', 0) + 1
                if exact: return "imprecise", (ti, ki), (tj, kj)
            stats['before'] = stats.get('before', 0) + want

if __name__ == "__main__":
    stats = {}
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        rng = random.Random(seed)
        s = random_script(rng, rng.choice((1, 1, 2)), False) if len(sys.argv) < 4 else random_script(rng, 1, True)
        bad = check(s, stats)
        if bad:
            print(seed, bad)
            for c in s.cores:
                print(c.spec, [(o.kind, getattr(o,'cell',None), getattr(o,'value',None)) for o in c.ops])
            break
    print(stats)
