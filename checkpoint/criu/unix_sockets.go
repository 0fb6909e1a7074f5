package criu

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// unixSocket is the kernel's information about one socket (sock_diag(7)).
type unixSocket struct {
	peer uint32 // inode of the other end, 0 if there is none
	name string
}

// Constants of linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	showName         = 1
	showPeer         = 4
	attrName         = 0
	attrPeer         = 2
)

// unixSockets lists the unix sockets of this network namespace, which tasks share, by
// inode.
func unixSockets() (map[uint32]unixSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	order := binary.NativeEndian
	q := make([]byte, 16+24)
	order.PutUint32(q, uint32(len(q)))
	order.PutUint16(q[4:], sockDiagByFamily)
	order.PutUint16(q[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	q[16] = unix.AF_UNIX
	order.PutUint32(q[20:], ^uint32(0)) // in all states
	order.PutUint32(q[28:], showName|showPeer)
	if err := unix.Sendto(fd, q, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	all, buf := map[uint32]unixSocket{}, make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, err
		}
		for m := buf[:n]; len(m) >= 16; {
			size := int(order.Uint32(m))
			if size < 16 || size > len(m) {
				return nil, fmt.Errorf("sock_diag: a message of %d bytes", size)
			}
			switch order.Uint16(m[4:]) {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				return all, nil
			case sockDiagByFamily:
				readSocket(m[16:size], all)
			}
			m = m[min((size+3)&^3, len(m)):]
		}
	}
}

// readSocket reads struct unix_diag_msg and the attributes after it.
func readSocket(m []byte, all map[uint32]unixSocket) {
	if len(m) < 16 {
		return
	}
	order := binary.NativeEndian
	var s unixSocket
	for a := m[16:]; len(a) >= 4; {
		size := int(order.Uint16(a))
		if size < 4 || size > len(a) {
			break
		}
		switch order.Uint16(a[2:]) {
		case attrName:
			s.name = strings.TrimRight(string(a[4:size]), "\x00")
			if rest, abstract := strings.CutPrefix(s.name, "\x00"); abstract {
				s.name = "@" + rest
			}
		case attrPeer:
			if size >= 8 {
				s.peer = order.Uint32(a[4:])
			}
		}
		a = a[min((size+3)&^3, len(a)):]
	}
	all[order.Uint32(m[4:])] = s
}
