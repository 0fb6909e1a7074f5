package steps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/slurm/steptable"
)

// ControlCommandName is the command that scancel and sattach run in a job to reach one of
// its steps.
const ControlCommandName = "step-control"

// Accepted is what that command writes first once the step has taken the call. The job
// may end before its exit status comes back.
const Accepted = "accepted\n"

// StatusNoStep is the exit status of that command where the step is not there.
const StatusNoStep = 221

// ControlCommand returns that command. Its arguments are the number of the step and what
// is to be done: "cancel", "signal" with a name, "layout", or "attach" with what an
// AttachFilter says.
func ControlCommand() *frame.Command {
	return &frame.Command{Name: ControlCommandName, Group: frame.GroupMore, Hidden: true, RawArgs: true,
		MaxOperands: -1, Summary: "reach a step of the job", Run: runControl}
}

func runControl(c *frame.Invocation) error {
	refuse := func(err error) error {
		fmt.Fprintln(c.Stderr, err)
		if errors.Is(err, steptable.ErrEnded) {
			return frame.ExitError(StatusNoStep)
		}
		return frame.ExitError(1)
	}
	if len(c.Args) < 2 {
		return refuse(errors.New("step-control: a step and what is to be done are wanted"))
	}
	number, err := strconv.ParseUint(c.Args[0], 10, 32)
	if err != nil {
		return refuse(err)
	}
	job, err := readAllocation(c)
	if err != nil {
		return refuse(err)
	}
	pid, socket, err := steptable.Find(job.table, uint32(number))
	if err != nil {
		return refuse(err)
	}
	call := &controlCall{c: c, arguments: c.Args[2:]}
	if err := call.read(c.Args[1]); err != nil {
		return refuse(err)
	}
	if socket == "" { // of srun --pty, or in a job whose temporary directory has too long a name
		return call.signalTask(pid, refuse)
	}
	status, err := call.run(socket)
	if err != nil {
		return refuse(err)
	}
	if status != 0 {
		return frame.ExitError(status)
	}
	return nil
}

// controlCall is one call of a step.
type controlCall struct {
	c         *frame.Invocation
	arguments []string
	frame     step.Frame
	filter    AttachFilter
	stdout    outputWriter // of what is attached to
	stderr    outputWriter
}

// read reads what is to be done.
func (k *controlCall) read(verb string) error {
	k.frame.Task = step.AllTasks
	switch verb {
	case "cancel":
		k.frame.Kind = step.FrameCancel
	case "signal":
		if len(k.arguments) == 0 {
			return errors.New("step-control: the name of a signal is wanted")
		}
		n, err := roost.SignalNumber(k.arguments[0])
		if err != nil {
			return err
		}
		k.frame.Kind, k.frame.Data = step.FrameSignal, []byte{byte(n)}
	case "layout":
		k.frame.Kind = step.FrameLayout
	case "attach":
		k.frame.Kind, k.frame.Data = step.FrameAttach, []byte{step.AttachSize}
		return k.filter.parse(k.arguments)
	default:
		return fmt.Errorf("step-control: %q is nothing that can be done", verb)
	}
	return nil
}

// signalTask is for a step without a socket: its process is signalled.
func (k *controlCall) signalTask(pid int, refuse func(error) error) error {
	signal := syscall.SIGTERM
	switch k.frame.Kind {
	case step.FrameSignal:
		signal = syscall.Signal(k.frame.Data[0])
	case step.FrameCancel:
	default:
		return refuse(errors.New("this step has its streams itself"))
	}
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return refuse(err)
	}
	_, err := io.WriteString(k.c.Stdout, Accepted)
	return err
}

// run makes the call and shows what comes back. It returns the exit status.
func (k *controlCall) run(socket string) (status int, err error) {
	conn, err := dialSocket(socket)
	if err != nil {
		return 0, steptable.ErrEnded
	}
	defer conn.Close()
	if !isOwnPeer(conn) {
		return 0, errors.New("the socket of the step is somebody else's")
	}
	if _, err := conn.Write(k.frame.Append(nil)); err != nil {
		return 0, steptable.ErrEnded
	}
	if _, err := io.WriteString(k.c.Stdout, Accepted); err != nil {
		return 0, err
	}
	if k.frame.Kind == step.FrameAttach {
		k.openOutputs(1)
		defer k.flushOutputs()
		go k.sendInput(conn)
	}
	for {
		f, err := step.ReadFrame(conn)
		if err != nil {
			return 0, steptable.ErrEnded
		}
		switch f.Kind {
		case step.FrameDone:
			if len(f.Data) == 1 {
				status = int(f.Data[0])
			}
			return status, nil
		case step.FrameRefuse:
			return 0, errors.New(string(f.Data))
		case step.FrameLayout:
			_, err := k.c.Stdout.Write(f.Data)
			return 0, err
		case step.FrameSize:
			if err := k.filter.check(f.Task); err != nil {
				return 0, err
			}
			k.openOutputs(f.Task)
		case step.FrameOutput:
			if isShown(k.filter.Output, f.Task) {
				k.stdout.write(f.Task, f.Data)
			}
		case step.FrameError:
			if isShown(k.filter.Error, f.Task) {
				k.stderr.write(f.Task, f.Data)
			}
		}
	}
}

// sendInput sends standard input to the tasks. Its end is not theirs: others may give
// them more.
func (k *controlCall) sendInput(conn io.Writer) {
	to := uint32(step.AllTasks)
	if k.filter.Input != AllTasks {
		to = uint32(k.filter.Input)
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := k.c.Stdin.Read(buffer)
		if n > 0 {
			f := step.Frame{Kind: step.FrameInput, Task: to, Data: buffer[:n]}
			if _, err := conn.Write(f.Append(nil)); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// isOwnPeer reports whether the process at the other end of a socket has our user.
func isOwnPeer(conn io.Closer) bool {
	f, ok := conn.(*os.File)
	if !ok {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		peer, e := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		own = e == nil && int(peer.Uid) == os.Geteuid()
	})
	return err == nil && own
}
