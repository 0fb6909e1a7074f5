package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// TestLogins lets a user manage jobs at s2 from other machines. These are s1, which has a
// schedd, and a laptop outside the pool. Without a login neither a user nor any node of
// the pool can.
func TestLogins(t *testing.T) {
	t.Parallel()
	h := startSubmitNodes(t)
	laptop := h.addLaptop("10.111.0.99")
	line := strings.Fields(h.at["s2"].mustAs("token", "--user"))
	if len(line) != 4 || line[0] != "roost" || line[1] != "login" || line[2] != submitNodes["s2"]+":9705" {
		t.Fatalf("the line is %q", line)
	}
	if out := laptop.mustAs(line[1:]...); !strings.Contains(out, "You are 12345 at s2 until ") {
		t.Errorf("roost login: %s", out)
	}
	if out, errs, code := h.at["s1"].runAs(someone, line[1:]...); code == 0 || !strings.Contains(errs, "used already") {
		t.Errorf("a token twice: exit %d, %s%s", code, out, errs)
	}
	h.tokenExpires()
	h.fromLaptop(laptop)
	h.fromNode()
	h.othersHaveNoAccess(laptop)
	h.loginIsRevoked(laptop)
}

// addLaptop adds a machine to the network with commands as the user and a home directory
// of its own. It has no daemons.
func (h *submitNodesPool) addLaptop(address string) *hostPool {
	h.net.attachHost("laptop", address)
	l := h.forSubtest(h.T)
	l.home = filepath.Join(h.dir, "laptop-home")
	if err := os.Mkdir(l.home, 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.Chown(l.home, int(someone.uid), int(someone.gid)); err != nil {
		h.Fatal(err)
	}
	l.nodes = map[string]*testHost{"submit": {hostPool: l, name: "laptop", dir: filepath.Join(h.dir, "laptop")}}
	l.commandHost = "laptop"
	for name, at := range h.at {
		at.commandHost = name
	}
	return l
}

func (h *submitNodesPool) tokenExpires() {
	line := strings.Fields(h.at["s2"].mustAs("token", "--user", "--expires", "1s"))
	waitReal(h.Context(), 1500*time.Millisecond)
	if out, errs, code := h.at["s1"].runAs(someone, line[1:]...); code == 0 || !strings.Contains(errs, "ran out") {
		h.Errorf("a token that ran out: exit %d, %s%s", code, out, errs)
	}
	line = strings.Fields(h.at["s2"].mustAs("token", "--user"))
	if out, errs, code := h.at["s1"].runAs(someone, "login", submitNodes["s3"]+":9705", line[3]); code == 0 ||
		!strings.Contains(errs, "not the schedd that made the token") {
		h.Errorf("a token of s2 at s3: exit %d, %s%s", code, out, errs)
	}
	if out, errs, code := h.at["s2"].runAs(commandUser{0, 0}, "token", "--user"); code == 0 ||
		!strings.Contains(errs, "root") {
		h.Errorf("a token for root: exit %d, %s%s", code, out, errs)
	}
}

// fromLaptop checks that the only login is used by default, and what can be done with it.
func (h *submitNodesPool) fromLaptop(laptop *hostPool) {
	id := h.ids["s2"]
	if out := laptop.mustAs("jobs"); !strings.Contains(out, id) {
		h.Errorf("roost jobs on the laptop: %s", out)
	}
	if out := laptop.mustAs("show", "--ad", id); !strings.Contains(out, "hunter2") {
		h.Errorf("the owner is not shown all of his job: %s", out)
	}
	laptop.mustAs("hold", id)
	h.awaitTrue(id+" is held", func() bool { return h.at["s2"].showTask(id).State == "held" })
	laptop.mustAs("rm", id)
	if out, errs, code := laptop.runAs(someone, "rm", h.ids["s3"]); code == 0 ||
		!strings.Contains(out+errs, "in s3's queue: on s3 run roost token --user") {
		h.Errorf("roost rm of a job of s3: exit %d, %s%s", code, out, errs)
	}
	if out, errs, code := laptop.runAs(someone, "token", "--user"); code == 0 ||
		!strings.Contains(errs, "run this on s2") {
		h.Errorf("a login makes a login: exit %d, %s%s", code, out, errs)
	}
	job := filepath.Join(laptop.home, "job.hcl")
	if err := os.WriteFile(job, []byte("job \"remote\" {\n  script = \"echo I am $(id -u)\"\n}\n"), 0o644); err != nil {
		h.Fatal(err)
	}
	made := strings.TrimSpace(laptop.mustAs("submit", job))
	if !strings.HasSuffix(made, ".s2") {
		h.Errorf("it is %s", made)
	}
	laptop.mustAs("wait", "-q", made)
	if out := laptop.mustAs("logs", made); out != "I am 12345\n" {
		h.Errorf("it wrote %q", out)
	}
	h.localFilesJob(laptop)
}

// localFilesJob submits from a directory on the laptop, in its own file system, that s2
// does not have.
func (h *submitNodesPool) localFilesJob(laptop *hostPool) {
	away, job := filepath.Join(h.dir, "only-there"), filepath.Join(laptop.home, "job.hcl")
	if err := os.Mkdir(away, 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(job, []byte("job \"remote\" {\n  command = [\"true\"]\n  directory = \""+away+
		"/work\"\n}\n"), 0o644); err != nil {
		h.Fatal(err)
	}
	cmd := laptop.command(h.Context(), someone, "submit", job)
	script := `mount -t tmpfs none "$0" && mkdir -m 777 "$0/work" && exec "$@"`
	at := slices.Index(cmd.Args, "setpriv")
	cmd.Args = slices.Concat(cmd.Args[:at], []string{"unshare", "--mount", "sh", "-c", script, away}, cmd.Args[at:])
	if out, err := cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "a job's files are where its queue is") {
		h.Errorf("a directory that s2 does not have: %v, %s", err, out)
	}
}

// fromNode logs in on s1, where the user has a schedd. Jobs of s2 are found by their ids,
// and everything else stays local.
func (h *submitNodesPool) fromNode() {
	s1, s2 := h.at["s1"], h.at["s2"]
	id := s2.submitJob("job \"far\" {\n  command = [\"sleep\", \"1000\"]\n}")
	fresh := filepath.Join(h.dir, "s1-home")
	if err := os.Mkdir(fresh, 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.Chown(fresh, int(someone.uid), int(someone.gid)); err != nil {
		h.Fatal(err)
	}
	s1.home = fresh
	if out, errs, code := s1.runAs(someone, "rm", id); code == 0 ||
		!strings.Contains(out+errs, "in s2's queue: on s2 run roost token --user") {
		h.Errorf("before the login: exit %d, %s%s", code, out, errs)
	}
	if out, errs, code := s1.runAs(someone, "--schedd", "s2", "jobs", "--all"); code != 0 ||
		!strings.Contains(out, id) || strings.Contains(out, h.ids["s1"]) {
		h.Errorf("reading s2 before the login: exit %d, %s%s", code, out, errs)
	}
	s1.mustAs(strings.Fields(s2.mustAs("token", "--user"))[1:]...)
	s1.mustAs("rm", id, h.ids["s1"])
	h.awaitTrue("both are removed", func() bool { // a starting job is removed when its node has answered
		return s2.showTask(id).State == "removed" && s1.showTask(h.ids["s1"]).State == "removed"
	})
	if out := s1.mustAs("--schedd", "s2", "run", "--", "echo", "from s1"); out != "from s1\n" {
		h.Errorf("roost run: %q", out)
	}
}

// othersHaveNoAccess checks that no node of the pool can act on the jobs of another
// node's users. That holds whatever its roles are. Users of s2 are unknown at s3: if a
// client skips its own checks, s3 refuses it.
func (h *submitNodesPool) othersHaveNoAccess(laptop *hostPool) {
	dir := filepath.Join(laptop.home, ".config", "roost", "logins")
	e, err := login.Load(dir, "s2")
	if err != nil {
		h.Fatal(err)
	}
	ca, err := pki.ReadCertificate(filepath.Join(h.nodes["s3"].dir, "schedd", "logins", "ca.pem"))
	if err != nil {
		h.Fatal(err)
	}
	e.Node, e.Address, e.Authority = "s3", submitNodes["s3"]+":9705", ca.Raw
	files := h.issueCertificate(filepath.Join(h.dir, "ca"), "rogue", peer.DaemonRoles()...)
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		h.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		h.Fatal(err)
	}
	node := *e
	node.Certificate, node.Key = pair.Certificate[0], key
	for who, e := range map[string]*login.LoginEntry{"a user of s2": e, "a node": &node} {
		if err := e.Save(dir); err != nil {
			h.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, "s3.json"), int(someone.uid), int(someone.gid)); err != nil {
			h.Fatal(err)
		}
		// s3 closes the connection
		if out, errs, code := laptop.runAs(someone, "rm", h.ids["s3"]); code != roost.Unavailable.ExitCode() {
			h.Errorf("%s removes a job of s3: exit %d, %s%s", who, code, out, errs)
		}
	}
	if err := login.Forget(dir, "s3"); err != nil {
		h.Fatal(err)
	}
	if got := h.at["s3"].showTask(h.ids["s3"]).State; got == "removed" {
		h.Errorf("the job of s3 is %s", got)
	}
}

// loginIsRevoked ends the laptop's login at s2.
func (h *submitNodesPool) loginIsRevoked(laptop *hostPool) {
	var all struct {
		Logins []struct{ ID, User, From string }
	}
	h.at["s2"].queryJSON(&all, "logins")
	gone := ""
	for _, l := range all.Logins {
		if l.From == "10.111.0.99" {
			gone = l.ID
		}
	}
	if len(all.Logins) != 2 || gone == "" {
		h.Fatalf("the logins at s2 are %v", all)
	}
	watching := laptop.command(h.Context(), someone, "wait",
		h.at["s2"].submitJob("job \"long\" {\n  command = [\"sleep\", \"1000\"]\n}"))
	if err := watching.Start(); err != nil {
		h.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- watching.Wait() }()
	h.at["s2"].mustAs("logins", "rm", gone)
	if out, errs, code := laptop.runAs(someone, "jobs"); code == 0 || !strings.Contains(errs, "revoked") {
		h.Errorf("after it was revoked: exit %d, %s%s", code, out, errs)
	}
	select {
	case err := <-ended:
		if err == nil {
			h.Error("what had waited goes on")
		}
	case <-time.After(awaitTimeout):
		watching.Process.Signal(syscall.SIGKILL)
		h.Error("what waits there is not cut off")
	}
}
