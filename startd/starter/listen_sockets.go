package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// A claim's listening sockets are the starter's: it binds them before the first task and
// closes them when it ends. Between two tasks of the claim they go on listening, so a
// client waits in the queue of the socket, and is not refused. Each task gets copies of
// them as descriptors 3 and up (sd_listen_fds(3)).

// firstSocketFD is the first socket's descriptor in the task.
const firstSocketFD = 3

// boundSocket is a socket that listens.
type boundSocket struct {
	proto.ListenSocket
	fd int
}

// backlog is how many connections wait for a task to accept them; the kernel lowers it to
// net.core.somaxconn.
const backlog = 4096

// claimSockets are the sockets of a claim, in the order in which its tasks get them.
type claimSockets []boundSocket

// bind binds those that a task is to have and are not bound yet, and closes the others.
// It reports whether there are others than before.
func (c *claimSockets) bind(o *proto.StartCmd) (changed bool, why startError) {
	var sockets claimSockets
	for _, wanted := range o.Sockets {
		bound := boundSocket{wanted, -1}
		for i, have := range *c {
			if have.ListenSocket == wanted {
				bound.fd, (*c)[i].fd = have.fd, -1
			}
		}
		sockets = append(sockets, bound)
	}
	changed = len(sockets) != len(*c)
	changed = c.close() || changed
	for i := range sockets {
		b := &sockets[i]
		if b.fd >= 0 {
			continue
		}
		changed = true
		var e syscall.Errno
		if b.fd, e = listenOn(b.Address, int(b.Port)); e != 0 {
			sockets.close()
			*c = nil
			return true, startError{proto.BindPort, e, itoa(int(b.Port))}
		}
	}
	*c = sockets
	return changed, startError{}
}

// close closes what is bound, and reports whether anything was.
func (c *claimSockets) close() (any bool) {
	for _, b := range *c {
		if b.fd >= 0 {
			syscall.Close(b.fd)
			any = true
		}
	}
	return any
}

// highSetupFD is above all descriptors that a child with sockets is made of.
const highSetupFD = 256

// raiseSetup moves the descriptor of roost-setup out of the way of sockets. They have
// fixed descriptors in the process that executes it.
func raiseSetup(s *starterProcess) startError {
	if len(s.sockets) == 0 || s.setup == 0 || s.setup >= highSetupFD {
		return startError{}
	}
	high, err := unix.FcntlInt(uintptr(s.setup), unix.F_DUPFD_CLOEXEC, highSetupFD)
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), "its program"}
	}
	syscall.Close(s.setup)
	s.setup = high
	return startError{}
}

// listenOn makes a socket that listens on a port of an IP address, given by its bytes.
// No bytes are all addresses, of both families where the machine has both.
func listenOn(address string, port int) (int, syscall.Errno) {
	if port <= 0 || port > 1<<16-1 {
		return -1, syscall.EINVAL
	}
	var at unix.Sockaddr
	family := unix.AF_INET6
	switch len(address) {
	case 0:
		if fd, e := listenAt(family, &unix.SockaddrInet6{Port: port}); e != syscall.EAFNOSUPPORT &&
			e != syscall.EADDRNOTAVAIL {
			return fd, e
		}
		family, at = unix.AF_INET, &unix.SockaddrInet4{Port: port}
	case 4:
		family, at = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte([]byte(address))}
	case 16:
		at = &unix.SockaddrInet6{Port: port, Addr: [16]byte([]byte(address))}
	default:
		return -1, syscall.EINVAL
	}
	return listenAt(family, at)
}

func listenAt(family int, at unix.Sockaddr) (int, syscall.Errno) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, errno(err)
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		if err = unix.Bind(fd, at); err == nil {
			err = unix.Listen(fd, backlog)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, errno(err)
	}
	return fd, 0
}

// The sockets of the process that makes a sandbox from inside, and where it has its
// report when it has placed them.
const (
	socketsFD     = serverGroupFD + 1
	movedReportFD = socketsFD + proto.MaxSockets
)

// hideSockets has no program that the process becomes inherit its sockets.
func (l *syscallList) hideSockets(n int) {
	for i := range n {
		l.try(syscall.SYS_FCNTL, uint64(socketsFD+i), syscall.F_SETFD, syscall.FD_CLOEXEC)
	}
}

// placeSockets puts the sockets where the program looks for them. Each is below where it
// was, so none is lost.
func (l *syscallList) placeSockets(n int) {
	if n == 0 {
		return
	}
	l.moveReport()
	for i := range n {
		l.must(proto.BindPort, "", syscall.SYS_DUP3, uint64(socketsFD+i), uint64(firstSocketFD+i), 0)
	}
}

// appendTo appends the sockets to the files of a child, from a descriptor on. Those
// between are closed.
func (c claimSockets) appendTo(files []uintptr, first int) []uintptr {
	if len(c) == 0 {
		return files
	}
	for len(files) < first {
		files = append(files, ^uintptr(0))
	}
	for _, b := range c {
		files = append(files, uintptr(b.fd))
	}
	return files
}

// listenPID begins the variable that names the process which the sockets are for.
const listenPID = "LISTEN_PID="

// addListenVariables tells the task of its sockets. pid is its first process, as it sees
// itself.
func addListenVariables(o *proto.StartCmd, pid int) {
	if len(o.Sockets) == 0 {
		return
	}
	names := "LISTEN_FDNAMES="
	for i, s := range o.Sockets {
		if i > 0 {
			names += ":"
		}
		names += s.Name
	}
	var environment []string
	for _, v := range o.Environment {
		if len(v) < len("LISTEN_") || v[:len("LISTEN_")] != "LISTEN_" {
			environment = append(environment, v)
		}
	}
	o.Environment = append(environment, listenPID+itoa(pid), "LISTEN_FDS="+itoa(len(o.Sockets)), names)
}
