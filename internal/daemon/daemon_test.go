package daemon

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
)

func TestReadySaysSoOnce(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := syscall.Dup(int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Setenv(ReadyFD, strconv.Itoa(fd))
	ReportReady()
	ReportReady() // the number may belong to another file now: it must not be used again
	if output, err := io.ReadAll(r); string(output) != "ready\n" || err != nil {
		t.Errorf("got %q, %v", output, err)
	}
	if _, there := os.LookupEnv(ReadyFD); there {
		t.Errorf("%s is still set", ReadyFD)
	}
}

func TestContextClosesTheDescriptorOnExec(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, err := syscall.Dup(int(w.Fd())) // a copy does not have the flag
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	t.Setenv(ReadyFD, strconv.Itoa(fd))
	_, cancel := SignalContext()
	cancel()
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		t.Errorf("got flags %#x, %v", flags, errno)
	}
}
