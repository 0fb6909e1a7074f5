package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// The hosts of a soak by role.
var (
	soakCentrals = []string{"central1", "central2", "central3"}
	soakSubmits  = []string{"submit", "submit2"}
	soakServers  = []string{"exec1", "exec2", "exec3"}
)

// soakDisk is the size of the disks of schedds and startds.
const soakDisk = 192 << 20

// startSoak builds the pool on a switch of its own and waits until all nodes are known.
func startSoak(t *testing.T) *soakPool {
	s := makeSoak(t, hostPoolOptions{sharesCgroups: true, tags: []string{"faults"}, failpointDir: t.TempDir()})
	s.startAll()
	return s
}

// makeSoak builds the pool on a switch of its own. Nothing runs yet.
func makeSoak(t *testing.T, as hostPoolOptions) *soakPool {
	net := newNetwork(t)
	net.virtualSwitch = newSwitch(t)
	s := &soakPool{
		cellHostPool: makeCellOn(t, net, as), clients: map[string]wire.ScheddClient{},
		seed:        uint64(time.Now().UnixNano()),
		lockedHosts: map[string]bool{}, faults: map[string]int{}, lastUsed: map[string]float64{}, began: time.Now(),
	}
	if seed, err := strconv.ParseUint(os.Getenv("ROOST_SOAK_SEED"), 10, 64); err == nil {
		s.seed = seed
	}
	var err error
	if s.faultLog, err = os.Create(filepath.Join(s.dir, "story")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.faultLog.Close() })
	s.addCellHost("submit2", "10.111.0.6", s.issueCertificate(filepath.Join(s.dir, "ca"), "submit2", peer.Schedd),
		func(n *config.Node) {
			n.Schedd = &config.ScheddSettings{SocketMode: 0o666}
		})
	for _, name := range soakSubmits { // remove audited jobs, or the disks would fill up for good
		n := s.nodes[name]
		n.node.Schedd.KeepHistory = 10 * time.Minute
		if err := os.WriteFile(n.dir+".hcl", config.Write(n.node), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.addServer("exec3", "10.111.0.13")
	s.addDesktop("desk1", "10.111.0.21")
	for name := range s.nodes {
		if as.failpointDir == "" {
			break
		}
		if err := os.MkdirAll(filepath.Join(as.failpointDir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range soakCentrals {
		s.mountFileSystem(s.newDisk(name), diskSize, 0o700)
	}
	for _, name := range slices.Concat(soakSubmits, soakServers) {
		s.mountFileSystem(s.newDisk(name), soakDisk, 0o711)
	}
	t.Cleanup(s.endAll)
	return s
}

// startAll starts all hosts, and waits until all nodes are known.
func (s *soakPool) startAll() {
	s.Helper()
	t := s.T
	for _, n := range s.nodes {
		n.start()
	}
	s.awaitFor(scaledTimeout(), "all machines", func() bool {
		return slices.Equal(s.machineNames(), []string{"desk1", "exec1", "exec2", "exec3"})
	})
	s.awaitThreeVoters()
	for _, name := range soakSubmits {
		conn, err := rpc.Dial("unix:"+filepath.Join(s.nodes[name].dir, "run", "schedd.sock"), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		s.clients[name] = wire.NewScheddClient(conn)
		s.awaitFor(scaledTimeout(), name+" serves", func() bool {
			_, err := s.clients[name].Health(t.Context(), &wire.HealthRequest{Brief: true})
			return err == nil
		})
	}
	s.makeUsers()
}

func (s *soakPool) newSwitch() *virtualSwitch { return s.net.virtualSwitch }

// newDisk returns the directory of a host that has a file system of its own, which can be
// full.
func (s *soakPool) newDisk(name string) string {
	switch n := s.nodes[name]; {
	case n.node.Negotiator != nil:
		return s.cellHostPool.replicaDisk(name)
	case n.node.Schedd != nil:
		return filepath.Join(n.dir, "schedd")
	default:
		return filepath.Join(n.dir, "startd")
	}
}

// addDesktop adds an execute node with an owner.
func (s *soakPool) addDesktop(name, address string) {
	s.addCellHost(name, address, s.issueCertificate(filepath.Join(s.dir, "ca"), name, peer.Startd),
		func(n *config.Node) {
			own := config.StartdSettings{Name: name, Listen: []string{address + ":9703"}}
			own.Resources.CPU, own.Resources.Memory, own.Resources.Disk = coresOfDesk*1000, 8<<30, 8<<30
			own.Policy = config.OwnerPolicy{Preset: "desktop", StartAfter: startAfter, ResumeAfter: resumeAfter,
				LeaveAfter: leaveAfter}
			n.Owner.File = n.Dir + "-owner.hcl"
			n.Startds = []config.StartdSettings{own}
		})
	n := s.nodes[name]
	n.onlyTerminals = true
	// All machines are one host, so the load of the others would count as foreign load.
	if err := os.WriteFile(n.node.Owner.File, []byte("foreign_cpu = 1000\nowners = [\"nobody\"]\n"),
		0o644); err != nil {
		s.Fatal(err)
	}
	s.desk = &ownedDesktop{testHost: n, address: address}
}

// soakUser is a user of the pool.
type soakUser struct {
	commandUser
	home string
}

// makeUsers creates the users' directories, and the program of their tasks.
func (s *soakPool) makeUsers() {
	s.users = []*soakUser{{someone, s.home}}
	for uid := someone.uid + 1; uid < someone.uid+3; uid++ {
		u := &soakUser{commandUser{uid, uid}, filepath.Join(s.dir, fmt.Sprint("home-", uid))}
		if err := os.Mkdir(u.home, 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.Chown(u.home, int(u.uid), int(u.gid)); err != nil {
			s.Fatal(err)
		}
		s.users = append(s.users, u)
	}
	locks := filepath.Join(s.dir, "locks")
	if err := os.Mkdir(locks, 0o777); err != nil {
		s.Fatal(err)
	}
	if err := os.Chmod(locks, 0o777|os.ModeSticky); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "task.sh"), []byte(soakScript), 0o755); err != nil {
		s.Fatal(err)
	}
	if _, err := criu.Find(""); err != nil {
		s.printLine("SKIPPED: no task is saved: %v", err)
		return
	}
	s.counting = &desktopPool{hostPool: s.hostPool}
	s.counting.worker = s.counting.buildWorker()
}

// runCommand runs a roost command as a user at a submit node.
func (s *soakPool) runCommand(ctx context.Context, u *soakUser, at string,
	args ...string) (stdout, stderr string, code int) {
	cmd := s.command(ctx, u.commandUser, args...)
	cmd.Dir = u.home
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOST_DIR=" + s.nodes[at].dir, "HOME=" + u.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.uid, Gid: u.gid}}
	return runOutput(cmd)
}
