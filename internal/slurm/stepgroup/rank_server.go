package stepgroup

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/pmi"
	"github.com/roost-batch/roost/internal/slurm/step"
)

// rankServer serves PMI-1 to the tasks of a group. A program that never speaks it notices
// nothing of it.
type rankServer struct {
	group   *Group
	mu      sync.Mutex
	node    *pmi.Node
	sockets []*os.File
	spoke   bool
	joiner  pmi.MessageJoiner
}

// pmiFD is the descriptor of its socket in a rank.
const pmiFD = 3

// replyTimeout bounds how long a reply to a rank may take.
const replyTimeout = 10 * time.Second

func newRankServer(g *Group) *rankServer {
	n := len(g.spec.Tasks)
	return &rankServer{group: g, sockets: make([]*os.File, n), node: pmi.NewNode(pmi.NodeSpec{
		KVSName: g.spec.KeySpace, FirstRank: g.spec.Tasks[0].Number, Ranks: n, Size: g.spec.Size,
		Nodes: g.spec.Machines,
	})}
}

// prepare gives a rank that is to be started its socket.
func (r *rankServer) prepare(index int, cmd *exec.Cmd) error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(fds[1]), "rank")
	r.sockets[index] = os.NewFile(uintptr(fds[0]), "rank")
	if err := syscall.SetNonblock(fds[1], false); err != nil { // the rank's library expects that
		theirs.Close()
		return err
	}
	t := r.group.tasks[index]
	t.files = append(t.files, theirs)
	cmd.ExtraFiles = []*os.File{theirs}
	own := make([]string, 0, len(cmd.Env)+5)
	for _, v := range cmd.Env { // what a launcher around this one has set
		if !strings.HasPrefix(v, "PMI_") && !strings.HasPrefix(v, "PMIX_") {
			own = append(own, v)
		}
	}
	cmd.Env = append(own, "PMI_FD="+strconv.Itoa(pmiFD), "PMI_RANK="+strconv.Itoa(t.spec.Number),
		"PMI_SIZE="+strconv.Itoa(r.group.spec.Size), "MPI_LOCALNRANKS="+strconv.Itoa(len(r.group.tasks)),
		"MPI_LOCALRANKID="+strconv.Itoa(index))
	return nil
}

// begin reads what a rank sends from now on.
func (r *rankServer) begin(index int) {
	go func() {
		buffer := make([]byte, 4<<10)
		for {
			n, err := r.sockets[index].Read(buffer)
			if n > 0 {
				r.change(func() {
					r.spoke = true
					r.node.ApplyInput(index, buffer[:n])
				})
			}
			if err != nil {
				return
			}
		}
	}()
}

// applyExit takes in the end of a rank. Ranks of a program that speaks no PMI-1 do not
// concern each other.
func (r *rankServer) applyExit(index int, e step.TaskExit) {
	r.change(func() {
		if r.spoke {
			text := ""
			if e != (step.TaskExit{}) {
				text = e.String()
			}
			r.node.ApplyExit(index, int32(e.Status()), text)
		}
	})
	r.sockets[index].Close()
}

// applyMessage takes in a message of the collector.
func (r *rankServer) applyMessage(data []byte) {
	part, ok := pmi.DecodeMessage(data)
	if !ok {
		return
	}
	r.change(func() {
		if m, complete, tooLong := r.joiner.Join(part, pmi.MaxGangKeys); complete && !tooLong {
			r.node.ApplyMessage(m)
		}
	})
}

// change changes the state, and does what that asks for.
func (r *rankServer) change(apply func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	apply()
	for _, reply := range r.node.TakeReplies() {
		socket := r.sockets[reply.Rank]
		_ = socket.SetWriteDeadline(time.Now().Add(replyTimeout))
		if _, err := socket.WriteString(reply.Data); err != nil {
			r.node.ApplyUnread(reply.Rank)
		}
		if reply.Close {
			socket.Close()
		}
	}
	for _, m := range r.node.TakeMessages() {
		for _, part := range m.Split() {
			r.group.emit(step.Frame{Kind: step.FrameRanks, Task: step.AllTasks, Data: part.Append(nil)})
		}
	}
}
