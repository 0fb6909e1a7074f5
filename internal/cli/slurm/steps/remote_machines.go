package steps

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// agentCommand is the command that a machine of a job runs for srun on another one.
const agentCommand = "step-agent"

// Bounds on what travels at once, in bytes.
const (
	maxReachOutput = 4 << 20
	maxReachInput  = 128 << 10
)

// remoteMachines are the machines of a step besides that of srun, reached by one call.
type remoteMachines struct {
	conn  io.ReadWriteCloser
	mu    sync.Mutex // of writing
	names []string
	specs []*step.TaskGroup
	read  []step.FrameReader
	// begun is closed when all tasks have begun, or when they never will.
	begun     chan struct{}
	beginOnce sync.Once
	waiting   []bool         // by place: its agent is not there yet
	early     [][]step.Frame // by place: what came for it meanwhile
}

// callMachines runs an agent on each of some machines of the job.
func callMachines(a *allocation, machines []int, specs []*step.TaskGroup) (*remoteMachines, error) {
	conn, err := dialSocket(a.socket)
	if err != nil {
		return nil, fmt.Errorf("the job's node: %w: %w", roost.Unavailable, err)
	}
	r := &remoteMachines{conn: conn, specs: specs, read: make([]step.FrameReader, len(machines)),
		begun: make(chan struct{}), waiting: slices.Repeat([]bool{true}, len(machines)),
		early: make([][]step.Frame, len(machines))}
	call := &scheddapi.ReachCall{Command: []string{"roost", agentCommand}, Interactive: true}
	for _, m := range machines {
		r.names = append(r.names, a.machines[m].Name)
		call.Lines = append(call.Lines, uint32(a.machines[m].Line))
	}
	call.Nodes = r.names
	if _, err := protodelim.MarshalTo(conn, call); err != nil {
		conn.Close()
		return nil, err
	}
	return r, nil
}

// dialSocket connects to a socket by a short name: its path may be longer than an address
// can be. Package net would double the time in which srun starts.
func dialSocket(path string) (io.ReadWriteCloser, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: name}); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), syscall.Close(fd))
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // so that a read ends when it is closed
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// send sends a frame to the agent of a machine, at once or when that is there.
func (r *remoteMachines) send(place int, f step.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[place] {
		r.early[place] = append(r.early[place], f)
		return nil
	}
	return r.write(place, f)
}

func (r *remoteMachines) write(place int, f step.Frame) error {
	text := f.Append(nil)
	for len(text) > 0 {
		n := min(len(text), maxReachInput)
		m := &scheddapi.ReachCall{Place: uint32(place), Data: text[:n]}
		if _, err := protodelim.MarshalTo(r.conn, m); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// serve passes on what the agents send, until the call is over. onEnd is called when the
// agent of a machine has ended, with the reason if it is not a good one.
func (r *remoteMachines) serve(onFrame func(place int, f step.Frame), onStderr func([]byte),
	onEnd func(place int, err error)) error {
	defer r.beginOnce.Do(func() { close(r.begun) })
	in := bufio.NewReader(r.conn)
	for left := len(r.names); left > 0; {
		out := &scheddapi.ReachOutput{}
		if err := (protodelim.UnmarshalOptions{MaxSize: maxReachOutput}).UnmarshalFrom(in, out); err != nil {
			return fmt.Errorf("%w: the node in whose queue the job is does not answer any more", roost.Unavailable)
		}
		place := int(out.GetPlace())
		switch {
		case out.GetError() != "" && !out.GetEnded():
			return errors.New(document.PrintableText(out.GetError()))
		case place >= len(r.names):
		case out.GetEnded():
			left--
			var err error
			if out.GetError() != "" {
				err = errors.New(document.PrintableText(out.GetError()))
			} else if out.GetCode() != 0 || out.GetSignal() != 0 {
				err = fmt.Errorf("its agent ended with exit code %d, signal %d", out.GetCode(), out.GetSignal())
			}
			onEnd(place, err)
		case out.GetStderr():
			onStderr(out.GetData())
		default:
			frames, err := r.read[place].Add(out.GetData())
			for _, f := range frames {
				if f.Kind == step.FrameHello {
					err = errors.Join(err, r.begin(place))
					continue
				}
				onFrame(place, f)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// begin has an agent begin its tasks.
func (r *remoteMachines) begin(place int) error {
	text, err := json.Marshal(r.specs[place])
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.write(place, step.Frame{Kind: step.FrameBegin, Task: step.AllTasks, Data: text})
	for _, f := range r.early[place] {
		err = errors.Join(err, r.write(place, f))
	}
	if r.waiting[place], r.early[place] = false, nil; !slices.Contains(r.waiting, true) {
		r.beginOnce.Do(func() { close(r.begun) })
	}
	return err
}
