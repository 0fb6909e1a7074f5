package pmi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const initLine2 = "cmd=init pmi_version=2 pmi_subversion=0\n"

// frame is a command as a rank sends it.
func frame(text string) string { return fmt.Sprintf("%6d%s", len(text), text) }

// newTestGang2 is a gang whose ranks have begun by PMI-2.
func newTestGang2(t *testing.T, nodes, ranks int) *testGang {
	g := newTestGang(t, nodes, ranks)
	for r := range nodes * ranks {
		g.send(r, initLine2)
		if want := "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0"; g.last(r) != want {
			t.Fatalf("rank %d: got %q", r, g.last(r))
		}
		g.send(r, frame(fmt.Sprintf("cmd=fullinit;pmirank=%d;threaded=FALSE;", r)))
		want := frame(fmt.Sprintf("cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=%d;size=%d;appnum=0;"+
			"debugged=FALSE;pmiverbose=FALSE;rc=0;", r, nodes*ranks))
		if g.last(r) != want {
			t.Fatalf("rank %d: got %q, want %q", r, g.last(r), want)
		}
	}
	return g
}

// TestExchange2 has four ranks on two nodes exchange keys by PMI-2, byte by byte.
func TestExchange2(t *testing.T) {
	g := newTestGang2(t, 2, 2)
	ask := func(rank int, text, want string) {
		t.Helper()
		for _, b := range []byte(frame(text)) {
			g.send(rank, string(b))
		}
		if g.last(rank) != frame(want) {
			t.Errorf("%s: got %q, want %q", text, g.last(rank), frame(want))
		}
	}
	for r := range 4 {
		ask(r, fmt.Sprintf("cmd=kvs-put;key=addr%d;value=a;;b=%d;", r, r), "cmd=kvs-put-response;rc=0;")
		g.send(r, frame("cmd=kvs-fence;thrid=0x7f;"))
	}
	g.run()
	for r := range 4 {
		if want := frame("cmd=kvs-fence-response;thrid=0x7f;rc=0;"); g.last(r) != want {
			t.Fatalf("rank %d: got %q, want %q", r, g.last(r), want)
		}
		ask(r, "cmd=kvs-get;jobid=kvs;srcid=-1;key=addr3;", "cmd=kvs-get-response;found=TRUE;value=a;;b=3;rc=0;")
		ask(r, "cmd=kvs-get;jobid=kvs;srcid=0;key=none;thrid=0x1;", "cmd=kvs-get-response;thrid=0x1;found=FALSE;rc=0;")
	}
	ask(0, "cmd=kvs-get;jobid=other;key=addr3;", "cmd=kvs-get-response;found=FALSE;rc=-1;errmsg=another job;")
	ask(0, "cmd=job-getid;", "cmd=job-getid-response;jobid=kvs;rc=0;")
	ask(0, "cmd=info-getjobattr;key=PMI_process_mapping;",
		"cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,2));rc=0;")
	ask(0, "cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;found=TRUE;value=4;rc=0;")
	ask(0, "cmd=info-getjobattr;key=physTopology;", "cmd=info-getjobattr-response;found=FALSE;rc=0;")
	ask(0, "cmd=name-publish;name=x;port=y;infokeycount=0;",
		"cmd=name-publish-response;rc=-1;errmsg=name-publish is not supported;")
	ask(0, "cmd=kvs-put;key="+strings.Repeat("k", MaxKey)+";value=v;",
		"cmd=kvs-put-response;rc=-1;errmsg=key_or_value_too_long;")
	for r := range 4 {
		ask(r, "cmd=finalize;", "cmd=finalize-response;rc=0;")
		g.exit(r, 0, "")
	}
	g.run()
	if o := g.collector.Outcome(); o == nil || o.Kind != Finish {
		t.Errorf("the gang ended with %+v", o)
	}
}

// TestNodeAttributes has ranks wait for what another one of their node puts. Those of
// other nodes do not see it.
func TestNodeAttributes(t *testing.T) {
	g := newTestGang2(t, 2, 2)
	g.send(0, frame("cmd=info-getnodeattr;key=shm;wait=FALSE;"))
	if want := frame("cmd=info-getnodeattr-response;found=FALSE;rc=0;"); g.last(0) != want {
		t.Errorf("got %q", g.last(0))
	}
	for _, rank := range []int{0, 2} {
		g.send(rank, frame("cmd=info-getnodeattr;thrid=0x5;key=shm;wait=TRUE;"))
	}
	before := len(g.got[2])
	g.send(1, frame("cmd=info-putnodeattr;key=shm;value=/dev/shm/x;"))
	if want := frame("cmd=info-getnodeattr-response;thrid=0x5;found=TRUE;value=/dev/shm/x;rc=0;"); g.last(0) != want {
		t.Errorf("got %q", g.last(0))
	}
	if len(g.got[2]) != before {
		t.Errorf("a rank of another node got %q", g.last(2))
	}
}

// TestAbort2 has ranks abort by PMI-2. The code is that of MPI_Abort if the message says
// one.
func TestAbort2(t *testing.T) {
	for msg, code := range map[string]int32{
		"application called MPI_Abort(MPI_COMM_WORLD, 42) - process 1": 42,
		"application called MPI_Abort(comm=0x84000004, 256)":           256,
		"MPI_Abort(MPI_COMM_WORLD, 0)":                                 1,
		"out of memory":                                                1, "": 1, "MPI_Abort(": 1,
	} {
		g := newTestGang2(t, 1, 2)
		g.send(1, frame("cmd=abort;isworld=TRUE;msg="+msg+";"))
		g.run()
		if o := g.collector.Outcome(); o == nil || o.Code != code || o.ExitStatus() == 0 || g.last(1) != "closed" {
			t.Errorf("%q: got %+v, %q", msg, o, g.last(1))
		}
	}
}

// TestProtocol2 has ranks break PMI-2. Each such rank ends the gang, and is named.
func TestProtocol2(t *testing.T) {
	for _, tt := range []struct{ sent, want string }{
		{"      ", "length"}, {"    0 ", "length"}, {" 65537", "length"}, {"-00001", "length"}, {"12ab56", "length"},
		{frame("cmd"), `the command "cmd"`}, {frame("cmd=finalize"), "the command"}, {frame("x=y;"), "the command"},
		{frame("cmd=nosuch;"), `the command "nosuch"`}, {frame("cmd=;"), "the command"},
		{frame("cmd=kvs-fence;") + frame("cmd=kvs-get;key=a;"), "while it waits in a fence"},
		{frame("cmd=kvs-fence;thrid=1;") + frame("cmd=kvs-fence;thrid=2;"), "a fence while it waits in one"},
		{frame("cmd=kvs-put;" + strings.Repeat("a=b;", 100)), ""},
		{frame("cmd=kvs-get;" + numbered(100)), "the command"},
		{frame("cmd=spawn;" + numbered(100)), ""},
	} {
		g := newTestGang2(t, 1, 2)
		g.send(0, tt.sent)
		g.run()
		text := ""
		if o := g.collector.Outcome(); o != nil {
			text = o.Text
		}
		if (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) ||
			text != "" && !strings.Contains(text, "rank 0 does not speak PMI-2") {
			t.Errorf("%.60q: got %q, want %q", tt.sent, text, tt.want)
		}
	}
	g := newTestGang(t, 1, 1)
	g.send(0, initLine2+frame("cmd=kvs-fence;"))
	g.run()
	if o := g.collector.Outcome(); o == nil || !strings.Contains(o.Text, "comes before fullinit") {
		t.Errorf("got %+v", o)
	}
}

// numbered are so many pairs of different names.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "argv%d=x;", i)
	}
	return b.String()
}

// TestMixedGang has ranks of both protocols in one gang. They exchange their keys all the
// same.
func TestMixedGang(t *testing.T) {
	g := newTestGang(t, 1, 2)
	g.send(0, initLine+"cmd=put kvsname=kvs key=a value=1\ncmd=barrier_in\n")
	g.send(1, initLine2+frame("cmd=fullinit;")+frame("cmd=kvs-put;key=b;value=2;")+frame("cmd=kvs-fence;"))
	g.run()
	g.send(0, "cmd=get kvsname=kvs key=b\n")
	g.send(1, frame("cmd=kvs-get;key=a;"))
	got := []string{g.last(0), g.last(1)}
	want := []string{"cmd=get_result rc=0 msg=success value=2", frame("cmd=kvs-get-response;found=TRUE;value=1;rc=0;")}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
