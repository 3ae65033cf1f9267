from hb_machine import Script

def mesh(P, rounds, value=lambda k: 1, row=lambda k: 0, bars=1):
    s = Script()
    for r in range(P):
        c = s.core(r)
        n = 0
        for k in range(rounds):
            c.write("D", r, at="stage")
            for b in range(bars):
                n += 1
                for p in range(P):
                    if p != r:
                        c.notify(p, (f"s{row(n-1)}", r), 1, at="notify")
                for p in range(P):
                    if p != r:
                        c.wait((f"s{row(n-1)}", p), value(n), at="wait")
                if b == 0:
                    for p in range(P):
                        if p != r:
                            c.read("D", p, at="read")
    return s

def test_clean():
    assert mesh(4, 1).kinds() == set()
    assert mesh(4, 2, value=lambda n: n, bars=2).kinds() == set()
    assert mesh(4, 2, row=lambda n: n, bars=2).kinds() == set()

def test_bad():
    s = mesh(4, 2, bars=2)
    print(s.check(0))
    for f in s.check(0): print(f.severity, f.kind, f.subtype, f.ranks, f.sites, f.where, f.count, f.message)
    assert s.kinds() == {"race", "early-release"}
    s = mesh(4, 2, value=lambda n: n)
    for f in s.check(0): print(f.severity, f.kind, f.subtype, f.ranks, f.sites, f.where, f.count, f.message)
    assert s.kinds() == {"race"}
