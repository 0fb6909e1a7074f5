package pmi

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// testGang is the nodes of a gang and their collector, which any test may replace.
type testGang struct {
	t         testing.TB
	nodes     []*Node
	collector *Collector
	got       [][]string // lines by rank of the gang
	perNode   int
	toNode    []chanOfMessages
	toHub     []chanOfMessages
}

type chanOfMessages []Message

func newTestGang(t testing.TB, nodes, ranks int) *testGang {
	g := &testGang{t: t, collector: NewCollector(nodes), got: make([][]string, nodes*ranks), perNode: ranks,
		toNode: make([]chanOfMessages, nodes), toHub: make([]chanOfMessages, nodes)}
	for i := range nodes {
		g.nodes = append(g.nodes, NewNode(NodeSpec{KVSName: "kvs", FirstRank: i * ranks, Ranks: ranks,
			Size: nodes * ranks, Nodes: nodes}))
	}
	return g
}

// send has a rank of the gang send text.
func (g *testGang) send(rank int, text string) {
	g.nodes[rank/g.perNode].ApplyInput(rank%g.perNode, []byte(text))
	g.collect(rank / g.perNode)
}

// collect takes what a node wants to be sent.
func (g *testGang) collect(node int) {
	for _, r := range g.nodes[node].TakeReplies() {
		rank := node*g.perNode + r.Rank
		if r.Data != "" {
			g.got[rank] = append(g.got[rank], strings.TrimSuffix(r.Data, "\n"))
		}
		if r.Close {
			g.got[rank] = append(g.got[rank], "closed")
		}
	}
	g.toHub[node] = append(g.toHub[node], g.nodes[node].TakeMessages()...)
}

// step delivers one message, and reports whether there was one.
func (g *testGang) step(choose func(int) int) bool {
	var ways []int
	for i := range g.nodes {
		if len(g.toHub[i]) > 0 {
			ways = append(ways, i)
		}
		if len(g.toNode[i]) > 0 {
			ways = append(ways, -1-i)
		}
	}
	if len(ways) == 0 {
		return false
	}
	if i := ways[choose(len(ways))]; i >= 0 {
		m := g.overWire(g.toHub[i][0])
		g.toHub[i] = g.toHub[i][1:]
		for _, e := range g.collector.Apply(i, m) {
			for k := range g.nodes {
				if e.To < 0 || e.To == k {
					g.toNode[k] = append(g.toNode[k], e.Message)
				}
			}
		}
	} else {
		i = -1 - i
		m := g.overWire(g.toNode[i][0])
		g.toNode[i] = g.toNode[i][1:]
		g.nodes[i].ApplyMessage(m)
		g.collect(i)
	}
	g.collector.check()
	return true
}

// overWire encodes and decodes a message.
func (g *testGang) overWire(m Message) Message {
	var j MessageJoiner
	for _, part := range m.Split() {
		got, ok := DecodeMessage(part.Append(nil))
		if !ok {
			g.t.Fatalf("%+v does not decode", part)
		}
		if whole, complete, tooLong := j.Join(got, MaxGangKeys); complete {
			return whole
		} else if tooLong {
			g.t.Fatal("too long")
		}
	}
	g.t.Fatal("no last part")
	return m
}

func first(int) int { return 0 }

func (g *testGang) run() {
	for g.step(first) {
	}
}

// last is the last line that a rank has got.
func (g *testGang) last(rank int) string {
	if len(g.got[rank]) == 0 {
		return ""
	}
	return g.got[rank][len(g.got[rank])-1]
}

// exit has a rank's process end.
func (g *testGang) exit(rank int, code int32, text string) {
	g.nodes[rank/g.perNode].ApplyExit(rank%g.perNode, code, text)
	g.collect(rank / g.perNode)
}

const initLine = "cmd=init pmi_version=1 pmi_subversion=1\n"

// TestExchange has four ranks on two nodes exchange keys, and end.
func TestExchange(t *testing.T) {
	g := newTestGang(t, 2, 2)
	for r := range 4 {
		g.send(r, initLine)
		g.send(r, fmt.Sprintf("cmd=put kvsname=kvs key=addr%d value=the address of %d\n", r, r))
		g.send(r, "cmd=barrier_in\n")
	}
	if g.last(3) == "cmd=barrier_out rc=0" {
		t.Fatal("a barrier ended before the collector knew of it")
	}
	g.run()
	for r := range 4 {
		if g.last(r) != "cmd=barrier_out rc=0" {
			t.Fatalf("rank %d: %q", r, g.last(r))
		}
		for other := range 4 {
			g.send(r, fmt.Sprintf("cmd=get kvsname=kvs key=addr%d\n", other))
			want := fmt.Sprintf("cmd=get_result rc=0 msg=success value=the address of %d", other)
			if g.last(r) != want {
				t.Errorf("rank %d got %q, want %q", r, g.last(r), want)
			}
		}
		g.send(r, "cmd=get key=PMI_process_mapping kvsname=kvs\n")
		if want := "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))"; g.last(r) != want {
			t.Errorf("got %q, want %q", g.last(r), want)
		}
		g.send(r, "cmd=get kvsname=kvs key=none\n")
		if !strings.HasPrefix(g.last(r), "cmd=get_result rc=-1 ") {
			t.Errorf("got %q for a key that is not there", g.last(r))
		}
	}
	for r := range 4 {
		g.send(r, "cmd=finalize\n")
		g.exit(r, 0, "")
	}
	g.run()
	if o := g.collector.Outcome(); o == nil || o.Kind != Finish || g.collector.SpokeNever() {
		t.Errorf("it ended as %+v", o)
	}
}

// TestCommands sends single lines, and compares the answer.
func TestCommands(t *testing.T) {
	key, value := strings.Repeat("k", MaxKey-1), strings.Repeat("v", MaxValue-1)
	for _, tt := range []struct{ line, want string }{
		{"cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024"},
		{"cmd=get_maxes color=red", "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024"},
		{"cmd=get_appnum", "cmd=appnum rc=0 appnum=0"},
		{"cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=kvs"},
		{"cmd=get_universe_size", "cmd=universe_size rc=0 size=4"},
		{"cmd=put kvsname=kvs key=a value=", "cmd=put_result rc=0 msg=success"},
		{"cmd=put value=x y key=a kvsname=kvs", "cmd=put_result rc=0 msg=success"},
		{"cmd=put kvsname=kvs key=" + key + " value=" + value, "cmd=put_result rc=0 msg=success"},
		{"cmd=put kvsname=kvs key=" + key + "k value=x", "cmd=put_result rc=-1 msg=key_or_value_too_long"},
		{"cmd=put kvsname=kvs key=k value=v" + value, "cmd=put_result rc=-1 msg=key_or_value_too_long"},
		{"cmd=put kvsname=other key=k value=v", "cmd=put_result rc=-1 msg=wrong_kvsname"},
		{"cmd=get kvsname=other key=k", "cmd=get_result rc=-1 msg=wrong_kvsname value=unknown"},
		{"cmd=publish_name service=s port=p", "cmd=publish_result rc=-1 msg=not_supported"},
		{"mcmd=spawn\nnprocs=1\nendcmd", "cmd=spawn_result rc=-1 msg=spawn_is_not_supported"},
		{"cmd=finalize", "cmd=finalize_ack rc=0"},
		{"cmd=abort exitcode=7", "closed"},
		{"cmd=dance", "closed"},
		{"hello", "closed"},
		{"cmd=put kvsname=kvs key=k value=" + strings.Repeat("v", 2*MaxValue), "closed"},
		{"cmd=init pmi_version=2 pmi_subversion=0", "closed"},
	} {
		g := newTestGang(t, 2, 2)
		g.send(1, initLine)
		for _, c := range tt.line + "\n" { // one byte at a time
			g.send(1, string(c))
		}
		if g.last(1) != tt.want {
			t.Errorf("%.80q: got %q, want %q", tt.line, g.last(1), tt.want)
		}
		if got := g.collector.Outcome(); g.last(1) == "closed" && (got == nil) {
			if g.run(); g.collector.Outcome() == nil || g.collector.Outcome().Kind != Stop {
				t.Errorf("%.80q: the gang goes on", tt.line)
			}
		}
	}
}

// TestEnds tells how a gang ends when a rank does something wrong.
func TestEnds(t *testing.T) {
	start := func(g *testGang, ranks ...int) {
		for _, r := range ranks {
			g.send(r, initLine)
		}
	}
	for name, tt := range map[string]struct {
		do   func(g *testGang)
		code int32
		text string
	}{
		"abort": {func(g *testGang) {
			start(g, 0, 1, 2, 3)
			g.send(2, "cmd=barrier_in\n")
			g.send(3, "cmd=abort exitcode=9\n")
		}, 9, "rank 3 has called MPI_Abort with code 9"},
		"killed": {func(g *testGang) { start(g, 0, 1, 2, 3); g.exit(1, 137, "was killed by signal 9") }, 137,
			"rank 1 was killed by signal 9"},
		"no finalize": {func(g *testGang) { start(g, 0, 1, 2, 3); g.exit(2, 0, "") }, 1,
			"rank 2 has ended without MPI_Finalize"},
		"one is silent": {func(g *testGang) { g.exit(1, 0, ""); start(g, 0) }, 1,
			"rank 1 has ended without MPI_Init, and others of the program have called it"},
		"one node is silent": {func(g *testGang) {
			g.exit(0, 0, "")
			g.exit(1, 0, "")
			for r := 2; r < 4; r++ {
				g.send(r, initLine+"cmd=barrier_in\n")
			}
		}, 1, "the ranks of task 0 of the gang have ended without MPI_Init, and others have called it"},
		"a barrier that one has left out": {func(g *testGang) {
			start(g, 0, 1, 2, 3)
			for r := range 3 {
				g.send(r, "cmd=barrier_in\n")
			}
			g.send(3, "cmd=finalize\n")
			g.exit(3, 0, "")
		}, 1, "rank 3 " + endedBefore},
		"all silent": {func(g *testGang) {
			for r := range 4 {
				g.exit(r, 0, "")
			}
		}, 0, ""},
		"before init": {func(g *testGang) { g.send(0, "cmd=get_maxes\n") }, 1,
			`rank 0 does not speak PMI-1: "get_maxes" comes before init`},
	} {
		g := newTestGang(t, 2, 2)
		tt.do(g)
		g.run()
		o := g.collector.Outcome()
		if o == nil || o.Code != tt.code || !strings.Contains(o.Text, tt.text) {
			t.Errorf("%s: got %+v, want code %d and %q", name, o, tt.code, tt.text)
		}
		for i, n := range g.nodes {
			if !n.IsOver() {
				t.Errorf("%s: node %d goes on", name, i)
			}
		}
	}
}

// TestMissing lists the ranks that have not come so far.
func TestMissing(t *testing.T) {
	g := newTestGang(t, 2, 8)
	for _, r := range []int{0, 1, 2, 3, 9} {
		g.send(r, initLine)
	}
	for i, n := range g.nodes {
		g.collector.Apply(i, n.ProgressMessage())
	}
	got := g.collector.Missing([]int{8, 8}, Initialised)
	if a, b := RankList(got[0]), RankList(got[1]); a != "4-7" || b != "0, 2-7" {
		t.Errorf("got %s and %s", a, b)
	}
}

// TestRandom has random gangs exchange keys while connections and collectors are lost. It
// compares each value that a rank gets with the one that was put.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 24))
		nodes, ranks, rounds := 1+rng.IntN(4), 1+rng.IntN(3), 1+rng.IntN(4)
		g := newTestGang(t, nodes, ranks)
		for r := range nodes * ranks {
			g.send(r, initLine)
		}
		for round := range rounds {
			for r := range nodes * ranks {
				g.send(r, fmt.Sprintf("cmd=put kvsname=kvs key=r%d value=%d of %d\n", r, round, r))
			}
			for _, r := range rng.Perm(nodes * ranks) {
				g.send(r, "cmd=barrier_in\n")
				for range rng.IntN(4) {
					g.step(rng.IntN)
				}
				g.breakSomething(rng)
			}
			for g.step(rng.IntN) {
				if rng.IntN(8) == 0 {
					g.breakSomething(rng)
				}
			}
			for r := range nodes * ranks {
				other := rng.IntN(nodes * ranks)
				g.send(r, fmt.Sprintf("cmd=get kvsname=kvs key=r%d\n", other))
				want := fmt.Sprintf("cmd=get_result rc=0 msg=success value=%d of %d", round, other)
				if g.last(r) != want {
					t.Fatalf("seed %d, round %d of %d, rank %d: got %q, want %q", seed, round, rounds, r, g.last(r),
						want)
				}
			}
		}
		for r := range nodes * ranks {
			g.send(r, "cmd=finalize\n")
			g.exit(r, 0, "")
			g.breakSomething(rng)
		}
		g.run()
		if o := g.collector.Outcome(); o == nil || o.Kind != Finish {
			t.Fatalf("seed %d: it ended as %+v", seed, o)
		}
	}
}

// breakSomething breaks the connection of a node, or loses the collector, now and then.
func (g *testGang) breakSomething(rng *rand.Rand) {
	switch rng.IntN(6) {
	case 0:
		g.reconnect(rng.IntN(len(g.nodes)))
	case 1:
		g.collector = NewCollector(len(g.nodes))
		for i := range g.nodes {
			g.reconnect(i)
		}
	}
}

// reconnect loses what is on its way to and from a node.
func (g *testGang) reconnect(node int) {
	g.toNode[node], g.toHub[node] = nil, nil
	g.nodes[node].ApplyConnected()
	g.collect(node)
}
