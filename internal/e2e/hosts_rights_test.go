package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// usersAreThemselves checks that every user who can reach the socket may submit, and that
// tasks have exactly the user's rights. System users are refused with a reason.
func (h *hostPool) usersAreThemselves() {
	for _, refused := range []commandUser{{0, 0}, {33, 33}, {999, 999}} {
		_, stderr, code := h.runAs(refused, "run", "--", "id")
		if code != 77 || !strings.Contains(stderr, "jobs of root and of system users are not taken here") {
			h.Errorf("uid %d: exit %d\n%s", refused.uid, code, stderr)
		}
	}
	if _, stderr, code := h.runAs(commandUser{65534, 65534}, "run", "--", "id"); code != 77 ||
		!strings.Contains(stderr, "that is nobody, as whom the kernel") {
		h.Errorf("nobody: exit %d\n%s", code, stderr)
	}
	for _, taken := range []commandUser{{54322, 54322}, {12345, 54321}} {
		dir := filepath.Join(h.dir, fmt.Sprintf("home-%d", taken.uid))
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, int(taken.uid), int(taken.gid))); err != nil {
			h.Fatal(err)
		}
		stdout, stderr, code := h.runAs(taken, "run", "-q", "-C", dir, "--", "sh", "-c",
			`id -u; id -g; id -G; umask; grep -E "^(CapEff|CapBnd|NoNewPrivs|Groups):" /proc/self/status; cp /proc/self/status made; ls -ld . >&2`)
		if code != 0 {
			h.Errorf("uid %d: exit %d\n%s%s", taken.uid, code, stdout, stderr)
		}
		h.Logf("uid %d:\n%s%s", taken.uid, stdout, stderr)
		want := fmt.Sprintf("%d\n%d\n%d\n", taken.uid, taken.gid, taken.gid)
		if !strings.HasPrefix(stdout, want) || !strings.Contains(stdout, "CapEff:\t0000000000000000") {
			h.Errorf("uid %d: got\n%swant %q first and no capabilities", taken.uid, stdout, want)
		}
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, "made"), &st); err != nil || st.Uid != taken.uid || st.Gid != taken.gid {
			h.Errorf("uid %d: its file: %v, of %d:%d", taken.uid, err, st.Uid, st.Gid)
		}
	}
	id := h.submitJob(`job "mine" { command = ["sh", "-c", "echo secret"] }`)
	h.mustAs("wait", "-q", "--timeout", "1m", id)
	if stdout, stderr, code := h.runAs(commandUser{65534, 65534}, "logs", id); code == 0 ||
		strings.Contains(stdout, "secret") {
		h.Errorf("another user reads the output: exit %d\n%s%s", code, stdout, stderr)
	}
}

// foreignNodesAreRefused checks nodes with invalid certificates: one of another pool's
// authority, none at all, and one for another role. None becomes a machine of the pool.
func (h *hostPool) foreignNodesAreRefused() {
	ours, foreign := filepath.Join(h.dir, "ca"), h.startAuthority("foreign-ca")
	theirs := h.issueCertificate(foreign, "rogue1", peer.Startd)
	h.addExecuteNode("rogue1", "10.111.0.21", theirs).start()
	h.addExecuteNode("rogue2", "10.111.0.22", h.issueCertificate(ours, "rogue2", peer.Schedd)).start()
	mixed := &config.TLSFiles{CA: filepath.Join(ours, "ca.pem"), Certificate: theirs.Certificate, Key: theirs.Key}
	h.addExecuteNode("rogue3", "10.111.0.23", mixed).start()
	for rogue, why := range map[string]string{
		// what it logs about the collector's certificate
		"rogue1": "the certificate was signed by another pool's authority",
		"rogue2": "the certificate of rogue2 is for [schedd]",
		"rogue3": "the certificate was signed by another pool's authority", // what it logs about its own certificate
	} {
		h.awaitTrue(rogue+" is told why", func() bool { return strings.Contains(h.nodes[rogue].logText(), why) })
	}
	good := h.issueCertificate(ours, "probe", peer.Startd)
	for _, tt := range []struct {
		name string
		cert *config.TLSFiles
		want string
	}{
		{"no certificate", nil, "certificate required"},
		{"another authority's", theirs, "certificate"},
		{"one of the pool", good, ""},
	} {
		for _, addr := range []string{collectorAddr, negotiatorAddr, "10.111.0.11:9703"} {
			err := h.probeDaemon("rogue1", addr, tt.cert)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				h.Errorf("%s at %s: got %v, want %q", tt.name, addr, err, tt.want)
			}
		}
	}
	if got := h.machineNames(); !slices.Equal(got, []string{"exec1", "exec2"}) {
		h.Errorf("the pool has %v", got)
	}
	h.Logf("rogue1: %s\nrogue2: %s\nrogue3: %s", h.nodes["rogue1"].logText(), h.nodes["rogue2"].logText(),
		h.nodes["rogue3"].logText())
	for _, rogue := range []string{"rogue1", "rogue2", "rogue3"} {
		h.nodes[rogue].stopMaster()
	}
}

// probeDaemon connects from a host to a daemon and waits for the first bytes of HTTP/2. A
// TLS 1.3 server refuses a client only after the client's part of the handshake.
func (h *hostPool) probeDaemon(from, addr string, files *config.TLSFiles) error {
	own := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	if files != nil {
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			return err
		}
		own.Certificates = []tls.Certificate{pair}
	}
	raw, err := dialFrom(h.net.namespaceName(from), addr)
	if err != nil {
		return err
	}
	defer raw.Close()
	conn := tls.Client(raw, own)
	conn.SetDeadline(time.Now().Add(awaitTimeout))
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err !=
		nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// dialFrom connects from inside a namespace. Its thread enters the namespace and returns.
// It cannot simply end, because it may be the process's first thread, whose namespace
// also counts as the process's.
func dialFrom(space, addr string) (net.Conn, error) {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	away, err := os.Open("/run/netns/" + space)
	if err != nil {
		return nil, err
	}
	defer away.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", addr, awaitTimeout)
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err // the thread stays locked and is not reused
	}
	runtime.UnlockOSThread()
	return conn, err
}
