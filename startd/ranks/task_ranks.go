package ranks

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/pmi"
)

// The events of a task's ranks.
type (
	rankInput struct {
		rank int
		data []byte
	}
	rankExit struct {
		rank int
		code int32
		text string
	}
	collectorConnected struct{ conn net.Conn }
	collectorMessage   struct{ message pmi.Message }
	collectorLost      struct {
		conn net.Conn
		err  error
	}
)

// taskRanks is the ranks of a task.
type taskRanks struct {
	Arguments
	node      *pmi.Node
	processes []rankProcess
	events    chan any
	conn      net.Conn // to the collector; nil: there is none now
	connless  time.Time
	warned    bool   // that there is none
	phases    []byte // as last sent
	running   int    // ranks whose process has not ended
	worst     int32  // exit code of a rank
	leaving   bool   // SIGTERM has come
	killAt    time.Time
	outcome   *pmi.Message // how the gang has ended
	giveUp    time.Time    // when the outcome is no longer waited for; zero: never
}

func newTaskRanks(a Arguments) *taskRanks {
	return &taskRanks{Arguments: a, node: pmi.NewNode(a.NodeSpec), processes: make([]rankProcess, a.Ranks),
		events: make(chan any, 64), connless: time.Now()}
}

// The times of a task's ranks.
const (
	progressInterval = 200 * time.Millisecond // between two reports on how far they are
	killDelay        = 2 * time.Second        // between SIGTERM and SIGKILL
	outcomeTimeout   = 30 * time.Second       // for how the gang ends, after a rank has failed
	connlessWarning  = 30 * time.Second
)

// run starts the ranks, waits for their end and that of the gang, and returns the exit
// code.
func (t *taskRanks) run() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2)
	for rank := range t.processes {
		if err := t.startRank(rank); err != nil {
			t.complain(fmt.Sprintf("rank %d cannot be started: %v", t.FirstRank+rank, err))
			for range t.Ranks - rank {
				t.processes[rank].ended = true
				t.node.ApplyExit(rank, failedStatus, "cannot be started: "+err.Error())
				rank++
			}
			break
		}
		t.running++
	}
	go t.dialCollector()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		t.act()
		if code, over := t.exitCode(); over {
			return code
		}
		select {
		case e := <-t.events:
			t.apply(e)
		case s := <-signals:
			t.onSignal(s.(syscall.Signal))
		case now := <-tick.C:
			t.onTick(now)
		}
	}
}

// apply takes in one event.
func (t *taskRanks) apply(e any) {
	switch e := e.(type) {
	case rankInput:
		t.node.ApplyInput(e.rank, e.data)
	case rankExit:
		t.processes[e.rank].ended = true
		t.processes[e.rank].socket.Close()
		t.running--
		t.worst = max(t.worst, e.code)
		if !t.leaving {
			t.node.ApplyExit(e.rank, e.code, e.text)
		}
	case collectorConnected:
		t.conn, t.warned = e.conn, false
		t.node.ApplyConnected()
	case collectorLost:
		if t.conn == e.conn {
			t.conn, t.connless = nil, time.Now()
		}
	case collectorMessage:
		if k := e.message.Kind; k == pmi.Stop || k == pmi.Finish {
			t.outcome = &e.message
		}
		t.node.ApplyMessage(e.message)
	}
}

// act does what the state asks for: it answers ranks, tells the collector, and kills.
func (t *taskRanks) act() {
	for _, r := range t.node.TakeReplies() {
		p := &t.processes[r.Rank]
		_ = p.socket.SetWriteDeadline(time.Now().Add(sendTimeout))
		if _, err := p.socket.WriteString(r.Data); err != nil && !p.ended {
			t.node.ApplyUnread(r.Rank)
		}
		if r.Close {
			p.socket.Close()
		}
	}
	messages := t.node.TakeMessages()
	for i := 0; t.conn != nil && i < len(messages); i++ {
		if t.leaving && messages[i].Kind == pmi.Failed {
			continue
		}
		t.send(messages[i])
	}
	if t.node.IsOver() && t.killAt.IsZero() {
		t.signalRanks(syscall.SIGTERM)
		t.signalRanks(syscall.SIGCONT)
		t.killAt = time.Now().Add(killDelay)
		t.giveUp = time.Now().Add(outcomeTimeout)
	}
}

// send sends a message to the collector if there is a connection. A connection that fails
// is closed: its reader reports that, and the next one begins with all that counts.
func (t *taskRanks) send(m pmi.Message) {
	if t.conn == nil {
		return
	}
	if err := writeMessage(t.conn, m); err != nil {
		t.conn.Close()
		t.conn, t.connless = nil, time.Now()
	}
}

// exitCode returns the exit code of the task, once it is known and no rank is left.
func (t *taskRanks) exitCode() (code int, over bool) {
	switch failure := t.node.Failure(); {
	case t.running > 0:
		return 0, false
	case t.leaving:
		return int(t.worst), true
	case t.outcome != nil:
		if t.outcome.Text != "" {
			t.complain(t.outcome.Text)
		}
		return t.outcome.ExitStatus(), true
	case failure != nil && !t.giveUp.IsZero() && time.Now().After(t.giveUp):
		t.complain(fmt.Sprintf("rank %d %s; the other tasks of the gang could not be told", failure.Rank, failure.Text))
		return failure.ExitStatus(), true
	}
	return 0, false
}

// onTick does what is due.
func (t *taskRanks) onTick(now time.Time) {
	if !t.killAt.IsZero() && now.After(t.killAt) {
		t.signalRanks(syscall.SIGKILL)
	}
	if m := t.node.ProgressMessage(); t.conn != nil && !bytes.Equal(m.Data, t.phases) {
		t.phases = m.Data
		t.send(m)
	}
	if t.conn == nil && !t.warned && now.Sub(t.connless) > connlessWarning {
		t.warned = true
		t.complain("there is no connection to the other tasks of the gang: its ranks wait if they are in a barrier")
	}
}

// onSignal passes a signal on to the ranks.
func (t *taskRanks) onSignal(s syscall.Signal) {
	if s == syscall.SIGTERM && !t.leaving {
		t.leaving = true
		t.send(pmi.Message{Kind: pmi.Leaving})
	}
	t.signalRanks(s)
}

// signalRanks sends a signal to the process groups of the ranks that run.
func (t *taskRanks) signalRanks(s syscall.Signal) {
	for i := range t.processes {
		if p := &t.processes[i]; !p.ended && p.cmd != nil && p.cmd.Process != nil {
			_ = syscall.Kill(-p.cmd.Process.Pid, s)
		}
	}
}

// complain writes a line to the standard error of the task.
func (t *taskRanks) complain(text string) { fmt.Fprintf(os.Stderr, "roost: %s\n", text) }
