package ranks

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/pmi"
)

// testCollector is a collector behind a socket for each task, as the startds and the
// schedd are.
type testCollector struct {
	t         *testing.T
	mu        sync.Mutex
	collector *pmi.Collector
	conns     []net.Conn
	inBarrier chan struct{} // one value for each message that a task is in a barrier
}

// newTestCollector listens for so many tasks in a directory.
func newTestCollector(t *testing.T, tasks int) (c *testCollector, sockets []string) {
	c = &testCollector{t: t, collector: pmi.NewCollector(tasks), conns: make([]net.Conn, tasks),
		inBarrier: make(chan struct{}, 64)}
	dir := t.TempDir()
	for i := range tasks {
		path := filepath.Join(dir, string(rune('a'+i)))
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		sockets = append(sockets, path)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go c.serve(i, conn)
			}
		}()
	}
	return c, sockets
}

func (c *testCollector) serve(task int, conn net.Conn) {
	defer conn.Close()
	c.mu.Lock()
	c.conns[task] = conn
	c.mu.Unlock()
	in := bufio.NewReader(conn)
	for {
		m, err := ReadMessage(in)
		if err != nil {
			return
		}
		c.mu.Lock()
		if m.Kind == pmi.Barrier {
			c.inBarrier <- struct{}{}
		}
		for _, e := range c.collector.Apply(task, m) {
			for i, to := range c.conns {
				if to != nil && (e.To < 0 || e.To == i) {
					_ = writeMessage(to, e.Message)
				}
			}
		}
		c.mu.Unlock()
	}
}

// restart loses the collector and all connections.
func (c *testCollector) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collector = pmi.NewCollector(len(c.conns))
	for i, conn := range c.conns {
		if conn != nil {
			conn.Close()
			c.conns[i] = nil
		}
	}
}

// runTasks runs a shell program in two tasks of two ranks, and returns their exit codes.
func runTasks(t *testing.T, program string, meanwhile func(*testCollector)) (codes [2]int, c *testCollector) {
	c, sockets := newTestCollector(t, 2)
	var tasks sync.WaitGroup
	for i := range codes {
		a := Arguments{NodeSpec: pmi.NodeSpec{KVSName: "kvs", FirstRank: 2 * i, Ranks: 2, Size: 4, Nodes: 2},
			Socket: sockets[i], Program: []string{"/bin/sh", "-c", prelude + program}}
		again, err := parseArguments(a.Command("roost-ranks"))
		if err != nil || strings.Join(again.Command(""), " ") != strings.Join(a.Command(""), " ") {
			t.Fatalf("%+v was read as %+v, %v", a, again, err)
		}
		tasks.Go(func() { codes[i] = newTaskRanks(again).run() })
	}
	if meanwhile != nil {
		meanwhile(c)
	}
	ended := make(chan struct{})
	go func() { tasks.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("they do not end")
	}
	return codes, c
}

// prelude has the shell speak PMI-1.
const prelude = `ask() { printf '%s\n' "$1" >&3; read -r answer <&3; }
start() { ask 'cmd=init pmi_version=1 pmi_subversion=1'; }
`

// TestExchange exchanges keys between the ranks of two tasks, while the collector is
// lost.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	program := `start; ask "cmd=put kvsname=kvs key=r$PMI_RANK value=of $PMI_RANK"
		: >` + dir + `/$PMI_RANK
		if [ $PMI_RANK = 3 ]; then while [ ! -e ` + dir + `/go ]; do sleep 0.01; done; fi
		ask cmd=barrier_in
		for r in 0 1 2 3; do ask "cmd=get kvsname=kvs key=r$r"
			[ "$answer" = "cmd=get_result rc=0 msg=success value=of $r" ] || exit 9
		done
		ask cmd=barrier_in; ask cmd=finalize`
	codes, c := runTasks(t, program, func(c *testCollector) {
		<-c.inBarrier // the first task waits
		c.restart()
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	if codes != [2]int{} {
		t.Errorf("exit codes %v", codes)
	}
	if o := c.collector.Outcome(); o == nil || o.Kind != pmi.Finish {
		t.Errorf("it ended as %+v", o)
	}
}

// TestFailures ends a gang in many ways. Both tasks have to end, with the same code.
func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		program string
		code    int
		text    string
	}{
		"exit code": {`start; [ $PMI_RANK = 2 ] && exit 5; ask cmd=barrier_in; sleep 600`, 5,
			"rank 2 has ended with exit code 5"},
		"signal": {`start; [ $PMI_RANK = 1 ] && kill -9 $$; ask cmd=barrier_in; sleep 600`, 137,
			"rank 1 was killed by signal 9"},
		"abort": {`start; [ $PMI_RANK = 3 ] && printf 'cmd=abort exitcode=7\n' >&3; trap '' TERM; sleep 600`, 7,
			"rank 3 has called MPI_Abort with code 7"},
		"no PMI-1": {`[ $PMI_RANK = 0 ] && echo hello >&3; sleep 600`, 1,
			`rank 0 does not speak PMI-1: the line "hello"`},
		"no finalize":  {`start; [ $PMI_RANK = 0 ] && exit; sleep 600`, 1, "rank 0 has ended without MPI_Finalize"},
		"never speaks": {`exit 0`, 0, ""},
		"no program":   {`exec /no/such/program`, 127, "has ended with exit code 127"},
	} {
		t.Run(name, func(t *testing.T) {
			codes, c := runTasks(t, tt.program, nil)
			if codes != [2]int{tt.code, tt.code} {
				t.Errorf("exit codes %v, want %d", codes, tt.code)
			}
			if o := c.collector.Outcome(); o == nil || !strings.Contains(o.Text, tt.text) {
				t.Errorf("it ended as %+v", o)
			} else if c.collector.SpokeNever() != (name == "never speaks") {
				t.Errorf("spoke never: %v", c.collector.SpokeNever())
			}
		})
	}
}

// TestArguments refuses command lines that nobody but a startd could have made.
func TestArguments(t *testing.T) {
	for _, line := range []string{"", "kvs 0 1 1 1 sock", "kvs x 1 1 1 sock prog", "kvs 0 0 1 1 sock prog",
		"kvs 2 2 3 1 sock prog", "kvs 0 1 1 0 sock prog", "kvs -1 1 1 1 sock prog",
		strings.Repeat("k", 64) + " 0 1 1 1 sock prog"} {
		if a, err := parseArguments(append([]string{"roost-ranks"}, strings.Fields(line)...)); err == nil {
			t.Errorf("%q was read as %+v", line, a)
		}
	}
	if _, err := ReadFrame(strings.NewReader("\xff\xff\xff\xff")); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
