package ranks

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rankProcess is one rank: its process, and our end of its socket.
type rankProcess struct {
	cmd    *exec.Cmd
	socket *os.File
	read   chan struct{} // closed when there is nothing more to read
	ended  bool
}

// pmiFD is the descriptor of its socket in a rank.
const pmiFD = 3

// startRank starts a rank. It reports what the rank sends, and its end.
func (t *taskRanks) startRank(rank int) error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK,
		0)
	if err != nil {
		return err
	}
	p := &t.processes[rank]
	theirs := os.NewFile(uintptr(fds[1]), "rank")
	defer theirs.Close()
	if err := syscall.SetNonblock(fds[1], false); err != nil { // the rank's library expects that
		return err
	}
	p.socket, p.read = os.NewFile(uintptr(fds[0]), "rank"), make(chan struct{})
	number := t.FirstRank + rank
	p.cmd = exec.Command(t.Program[0], t.Program[1:]...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{theirs}
	if number == 0 {
		p.cmd.Stdin = os.Stdin
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Env = append(withoutPMI(os.Environ()), "PMI_FD="+strconv.Itoa(pmiFD), "PMI_RANK="+strconv.Itoa(number),
		"PMI_SIZE="+strconv.Itoa(t.Size), "MPI_LOCALNRANKS="+strconv.Itoa(t.Ranks), "MPI_LOCALRANKID="+
			strconv.Itoa(rank))
	if err := p.cmd.Start(); err != nil {
		p.socket.Close()
		return err
	}
	go t.readRank(rank)
	go t.awaitRank(rank)
	return nil
}

// withoutPMI leaves out what a launcher around this one has set.
func withoutPMI(environment []string) []string {
	own := make([]string, 0, len(environment)+5)
	for _, v := range environment {
		if !strings.HasPrefix(v, "PMI_") && !strings.HasPrefix(v, "PMIX_") {
			own = append(own, v)
		}
	}
	return own
}

// readRank reports what a rank sends until it closes its socket.
func (t *taskRanks) readRank(rank int) {
	p := &t.processes[rank]
	defer close(p.read)
	buffer := make([]byte, 4<<10)
	for {
		n, err := p.socket.Read(buffer)
		if n > 0 {
			t.events <- rankInput{rank, append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// drainTime is for what a rank has sent before its end. It counts if a child of the rank
// has the socket open.
const drainTime = 100 * time.Millisecond

// awaitRank reports the end of a rank, after all that it has sent.
func (t *taskRanks) awaitRank(rank int) {
	p := &t.processes[rank]
	err := p.cmd.Wait()
	_ = p.socket.SetReadDeadline(time.Now().Add(drainTime))
	<-p.read
	code, text := exitOf(err)
	t.events <- rankExit{rank, code, text}
}

// exitOf says how a process has ended. A signal gives 128 and its number.
func exitOf(err error) (code int32, text string) {
	var exit *exec.ExitError
	if err == nil {
		return 0, ""
	}
	if !errors.As(err, &exit) {
		return 1, err.Error()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal()), fmt.Sprintf("was killed by signal %d", status.Signal())
	}
	return int32(exit.ExitCode()), fmt.Sprintf("has ended with exit code %d", exit.ExitCode())
}
