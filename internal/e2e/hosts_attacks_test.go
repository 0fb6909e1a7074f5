package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// mallory is a malicious user of the submit node.
var mallory = commandUser{54321, 54321}

// attackedPool is a pool of real daemons on this machine with certificates, and a job
// that is attacked.
type attackedPool struct {
	*hostPool
	addresses map[string]string // addresses of the daemons by role; the second startd's is "other"
	ca        string
	ids       map[string]*rpc.Identity // identities of nodes that the attacker has
	job       string
	seq       uint64
}

// TestAttacks attacks the real programs as a local user, as an outsider, and as one
// compromised node. Each attack must be refused, and the daemon must log it. Attacks that
// need the inside of a daemon are in the tests of its package.
func TestAttacks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there is no other user to be; attacks are not tried")
	}
	t.Parallel()
	a := startAttacked(t)
	for _, part := range []struct {
		name string
		run  func(*attackedPool)
	}{
		{"connections", (*attackedPool).testConnections}, {"methods", (*attackedPool).testMethods},
		{"ads", (*attackedPool).testForgedAds}, {"attempts", (*attackedPool).testForeignAttempts},
		{"claims", (*attackedPool).testForgedClaims}, {"users", (*attackedPool).testUserAccess},
		{"flood", (*attackedPool).floodConnections},
		{"revoked", (*attackedPool).testRevoked},
	} {
		t.Run(part.name, func(t *testing.T) {
			b := *a
			b.hostPool = a.forSubtest(t)
			part.run(&b)
			if state := b.showTask(a.job); state.State != "running" || state.Attempt != 1 {
				t.Errorf("the job is %+v", state)
			}
		})
	}
}

func startAttacked(t *testing.T) *attackedPool {
	dir := openDir(t)
	h := &hostPool{T: t, dir: dir, nodes: map[string]*testHost{}}
	h.roost, h.home = program(t), filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(h.home, 0o700), os.Chown(h.home, int(someone.uid), int(someone.gid))); err != nil {
		t.Fatal(err)
	}
	a := &attackedPool{hostPool: h, addresses: map[string]string{}, ca: h.startAuthority("ca"),
		ids: map[string]*rpc.Identity{}}
	roles := []string{"collector", "negotiator", "startd", "other", "checkpoint-server"}
	for i, address := range freeAddresses(t, len(roles)) {
		a.addresses[roles[i]] = address
	}
	pool := func(n *config.Node) {
		n.Collectors, n.Negotiators = []string{a.addresses["collector"]}, []string{a.addresses["negotiator"]}
	}
	a.addHost("central", "", a.issueCertificate(a.ca, "central", peer.Collector, peer.Negotiator,
		peer.CheckpointServer), func(n *config.Node) {
		pool(n)
		n.Collector = &config.CollectorSettings{Listen: []string{a.addresses["collector"]}}
		n.Negotiator = &config.NegotiatorSettings{Listen: []string{a.addresses["negotiator"]}, Cycle: 5 * time.Second}
		n.Images = &config.CheckpointServerSettings{Listen: []string{a.addresses["checkpoint-server"]},
			Dir: filepath.Join(dir, "images")}
	})
	a.addHost("submit", "", a.issueCertificate(a.ca, "submit", peer.Schedd), func(n *config.Node) {
		pool(n)
		n.Schedd = &config.ScheddSettings{SocketMode: 0o666}
	})
	for name, role := range map[string]string{"exec1": "startd", "exec2": "other"} {
		a.addHost(name, "", a.issueCertificate(a.ca, name, peer.Startd), func(n *config.Node) {
			pool(n)
			d := config.StartdSettings{Name: name, Listen: []string{a.addresses[role]}}
			d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 4000, 4<<30, 4<<30
			n.Startds = []config.StartdSettings{d}
		})
	}
	for _, name := range []string{"central", "submit", "exec1", "exec2"} {
		a.nodes[name].start()
		t.Cleanup(a.nodes[name].stopMaster)
	}
	for _, role := range peer.DaemonRoles() {
		a.ids[string(role)] = a.newIdentity("rogue-"+string(role), role)
	}
	a.awaitTrue("both execute nodes", func() bool { return slices.Equal(a.machineNames(), []string{"exec1", "exec2"}) })
	a.job = a.submitJob(`job "mine" {
  command = ["sh", "-c", "echo $TOKEN; exec sleep 600"]
  environment = { TOKEN = "hunter2" }
  requirements = "Machine == \"exec1\""
}`)
	a.awaitTrue("the job runs", func() bool { return a.showTask(a.job).State == "running" })
	fmt.Sscan(a.job, &a.seq)
	return a
}

func (a *attackedPool) newIdentity(name string, roles ...peer.Role) *rpc.Identity {
	a.Helper()
	id, err := pki.Load(a.issueCertificate(a.ca, name, roles...))
	if err != nil {
		a.Fatal(err)
	}
	return id
}

// dialDaemon connects to a daemon with one of the attacker's certificates.
func (a *attackedPool) dialDaemon(daemon string, id *rpc.Identity) *grpc.ClientConn {
	a.Helper()
	conn, err := rpc.Dial(a.addresses[daemon], id, "")
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { conn.Close() })
	return conn
}

// dialSchedd connects to the schedd as a user.
func (a *attackedPool) dialSchedd(who commandUser) *grpc.ClientConn {
	a.Helper()
	conn, err := rpc.DialTransport("schedd", nil, "", func(context.Context, string) (net.Conn, error) {
		return dialAs(who, filepath.Join(a.nodes["submit"].dir, "run", "schedd.sock"))
	})
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { conn.Close() })
	return conn
}

// dialAs connects to a unix socket as a user: the kernel gives the connecting thread's
// user to the other end.
func dialAs(who commandUser, path string) (net.Conn, error) {
	runtime.LockOSThread()
	const unchanged = ^uintptr(0)
	for _, set := range [][2]uintptr{{unix.SYS_SETRESGID, uintptr(who.gid)}, {unix.SYS_SETRESUID, uintptr(who.uid)}} {
		if _, _, e := syscall.RawSyscall(set[0], unchanged, set[1], unchanged); e != 0 {
			return nil, e // the thread stays locked and is not reused; as below
		}
	}
	conn, err := net.Dial("unix", path)
	for _, set := range []uintptr{unix.SYS_SETRESUID, unix.SYS_SETRESGID} {
		if _, _, e := syscall.RawSyscall(set, unchanged, 0, unchanged); e != 0 {
			return nil, e
		}
	}
	runtime.UnlockOSThread()
	return conn, err
}

// awaitLogged waits until a node's log has all of these texts.
func (a *attackedPool) awaitLogged(node string, words ...string) {
	a.Helper()
	for _, w := range words {
		if a.awaitTrue(node+" logs "+w, func() bool {
			return strings.Contains(a.nodes[node].logText(), w)
		}); a.Failed() {
			return
		}
	}
}

// nodeOfDaemon returns the node of a daemon.
func nodeOfDaemon(daemon string) string {
	return map[string]string{"startd": "exec1", "other": "exec2"}[daemon] +
		map[bool]string{true: "central"}[daemon != "startd" && daemon != "other"]
}

// testConnections connects without a valid certificate.
func (a *attackedPool) testConnections() {
	foreign := a.startAuthority("foreign")
	theirs := a.issueCertificate(foreign, "exec1", peer.DaemonRoles()...)
	pair, err := tls.LoadX509KeyPair(theirs.Certificate, theirs.Key)
	if err != nil {
		a.Fatal(err)
	}
	for _, daemon := range slices.Sorted(maps.Keys(a.addresses)) {
		for name, own := range map[string]*tls.Config{
			"in the clear": nil, "no certificate": {}, "another pool's": {Certificates: []tls.Certificate{pair}},
			"TLS 1.2": {MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
		} {
			conn, err := net.Dial("tcp", a.addresses[daemon])
			if err != nil {
				a.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(awaitTimeout))
			if own != nil {
				own.InsecureSkipVerify, own.NextProtos = true, []string{"h2"}
				conn = tls.Client(conn, own)
			}
			conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
			if n, err := conn.Read(make([]byte, 1)); err == nil && own != nil ||
				errors.Is(err, os.ErrDeadlineExceeded) {
				a.Errorf("%s, %s: got %d bytes, %v", daemon, name, n, err)
			}
			conn.Close()
		}
		a.awaitLogged(nodeOfDaemon(daemon), `msg="refused a connection" daemon=`)
	}
}

// testMethods calls every method with every certificate that is not valid for it, and as
// a user.
func (a *attackedPool) testMethods() {
	table := peer.MethodAccess()
	served := map[string]string{"Collector": "collector", "Negotiator": "negotiator", "Replica": "negotiator",
		"Startd": "startd", "CheckpointServer": "checkpoint-server", "Relay": "collector"}
	refused := 0
	call := func(conn *grpc.ClientConn, role peer.Role, daemon, method string) (isRefused bool) {
		service := strings.TrimPrefix(strings.Split(method, "/")[1], "roost.wire.")
		if here := served[service] == daemon || service == "Startd" &&
			daemon == "other"; slices.Contains(table[method], role) && here {
			return false // permitted for this role: its requests are tested below
		}
		if err := invokeMethod(a.Context(), conn, method); !errors.Is(err, roost.PermissionDenied) &&
			!strings.Contains(fmt.Sprint(err), "unknown") {
			a.Errorf("%s as %s at %s: got %v", method, role, daemon, err)
		}
		return !slices.Contains(table[method], role)
	}
	methods := slices.Sorted(maps.Keys(table))
	// each daemon logs its first refusal of each peer, and not all of what follows
	for _, logged := range []bool{true, false} {
		for _, role := range peer.DaemonRoles() {
			for daemon := range a.addresses {
				conn := a.dialDaemon(daemon, a.ids[string(role)])
				for _, method := range methods {
					if call(conn, role, daemon, method) {
						if refused++; logged {
							break
						}
					}
				}
				if logged {
					a.awaitLogged(nodeOfDaemon(daemon), fmt.Sprintf(`peer=rogue-%s`, role))
				}
			}
		}
	}
	conn := a.dialSchedd(mallory)
	for _, method := range slices.Sorted(maps.Keys(table)) {
		if slices.Contains(table[method], peer.User) {
			continue
		}
		if err := invokeMethod(a.Context(), conn, method); !errors.Is(err, roost.PermissionDenied) {
			a.Errorf("%s as a user: got %v", method, err)
		}
		refused++
	}
	a.awaitLogged("submit", `msg="refused a call of /roost.wire.Startd/Session" daemon=schedd peer="uid 54321"`)
	a.Logf("%d calls of methods that are not for the caller", refused)
}

// invokeMethod calls a method of any kind with an empty message.
func invokeMethod(ctx context.Context, conn *grpc.ClientConn, method string) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err == nil {
		stream.SendMsg(&wire.HealthRequest{}) // Recv returns its result
		stream.CloseSend()
		err = stream.RecvMsg(&wire.HealthReply{})
	}
	if err == io.EOF {
		return nil
	}
	return rpc.FromStatus(err)
}

// testRevoked checks an attacker whose certificate is revoked. The daemons must close its
// connections as soon as they have the list.
func (a *attackedPool) testRevoked() {
	files := a.issueCertificate(a.ca, "caught", peer.Negotiator)
	id, err := pki.Load(files)
	if err != nil {
		a.Fatal(err)
	}
	watch, err := wire.NewCollectorClient(a.dialDaemon("collector", id)).Watch(a.Context(),
		&wire.WatchAds{Type: "Machine"})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		a.Fatal(err)
	}
	authority, err := pki.LoadAuthority(a.ca)
	if err != nil {
		a.Fatal(err)
	}
	leaf, err := pki.ReadCertificate(files.Certificate)
	if err != nil {
		a.Fatal(err)
	}
	list, err := authority.Revocations(1, []pki.RevokedCert{{Serial: leaf.SerialNumber, At: time.Now()}},
		time.Now(), time.Hour)
	if err == nil {
		err = pki.SaveRevocations(files, list)
	}
	if err != nil {
		a.Fatal(err)
	}
	for err == nil {
		_, err = watch.Recv()
	}
	if !errors.Is(rpc.FromStatus(err), roost.Unavailable) {
		a.Errorf("its stream: got %v", err)
	}
	if err := invokeMethod(a.Context(), a.dialDaemon("collector", id), "/roost.wire.Collector/Query"); !errors.Is(err,
		roost.Unavailable) {
		a.Errorf("it comes again: got %v", err)
	}
	a.awaitLogged("central", `msg="closed the connection of a peer" daemon=collector peer=caught`,
		`peer \"caught\": not authenticated: the certificate was revoked on`)
}
