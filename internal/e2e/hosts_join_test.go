package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/enroll"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// unjoinedHosts are hosts with the programs on them that know only an address of each
// other.
type unjoinedHosts struct {
	*testing.T
	net        *testNetwork
	roost, dir string
	masters    []*exec.Cmd
}

// hostDirectory returns the directory of a host's files.
func (b *unjoinedHosts) hostDirectory(host string) enroll.NodePaths {
	return enroll.NodePaths{Root: filepath.Join(b.dir, host)}
}

// command returns a command on a host, where no systemd runs.
func (b *unjoinedHosts) command(host string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", b.net.namespaceName(host), b.roost}, args...)...)
	cmd.Dir = "/"
	return cmd
}

// runCommand runs a command to its end.
func (b *unjoinedHosts) runCommand(host string, args ...string) (stdout, stderr string, code int) {
	b.Helper()
	cmd := b.command(host, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (b *unjoinedHosts) mustRun(host string, args ...string) string {
	b.Helper()
	stdout, stderr, code := b.runCommand(host, args...)
	if code != 0 {
		b.Fatalf("roost %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// expectRefusal runs a command that must fail with certain words.
func (b *unjoinedHosts) expectRefusal(wantText, host string, args ...string) {
	b.Helper()
	_, stderr, code := b.runCommand(host, args...)
	if code == 0 || !strings.Contains(stderr, wantText) {
		b.Errorf("roost %s: exit %d, want one that says %q\n%s", strings.Join(args, " "), code, wantText, stderr)
	}
}

// startMaster starts the daemons of a host, as its owner does without systemd.
func (b *unjoinedHosts) startMaster(host string) {
	b.Helper()
	cmd := b.command(host, "master", "--config", b.hostDirectory(host).NodeFile())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(b.dir, host+".log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.masters = append(b.masters, cmd)
	b.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); b.Failed() {
			b.Logf("==== %s\n%s", host, text)
		}
	})
}

// tokenLine returns the command line that a token prints, with further words of the host.
func (b *unjoinedHosts) tokenLine(text, host string, more ...string) []string {
	words := strings.Fields(text)
	if len(words) < 4 || words[0] != "roost" {
		b.Fatalf("got the line %q", text)
	}
	return append(append(words[1:], "--root", b.hostDirectory(host).Root, "--name", host), more...)
}

// TestMachinesJoin starts with nothing and ends with a second machine that runs a job,
// over an untrusted network. Every invalid way to join must fail.
func TestMachinesJoin(t *testing.T) {
	t.Parallel()
	b := &unjoinedHosts{T: t, net: newNetwork(t), dir: openDir(t), roost: program(t)}
	for host, address := range map[string]string{"first": "10.111.0.1", "second": "10.111.0.2", "third": "10.111.0.3"} {
		b.net.attachHost(host, address)
	}
	began := time.Now()
	first := b.mustRun("first", "init", "--name", "lab", "--root", b.hostDirectory("first").Root)
	b.startMaster("first")
	deadline := time.Now().Add(awaitTimeout)
	joined := b.tokenLine(first, "second")
	for { // as a user does who is faster than the first machine
		_, stderr, code := b.runCommand("second", joined...)
		if code == 0 {
			break
		}
		if !strings.Contains(stderr, "nothing listens on port 9700") || time.Now().After(deadline) {
			t.Fatalf("join: exit %d\n%s", code, stderr)
		}
	}
	b.startMaster("second")
	home := filepath.Join(b.dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, int(someone.uid), int(someone.gid))); err != nil {
		t.Fatal(err)
	}
	out, err := b.runJob(home)
	// the first machine's schedd is not up yet
	for strings.Contains(string(out), "no pool is running") && time.Now().Before(deadline) {
		out, err = b.runJob(home)
	}
	took := time.Since(began)
	if err != nil || !strings.Contains(string(out), "done") {
		b.printLogs()
		t.Fatalf("roost run: %v\n%s", err, out)
	}
	t.Logf("from nothing to a job on the second machine, two commands each: %v", took.Round(time.Millisecond))
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	t.Run("refused", func(t *testing.T) { part := *b; part.T = t; part.testInvalidTokens(joined) })
	t.Run("revoked", func(t *testing.T) { part := *b; part.checkRevocation() })
}

// runJob runs a job that is submitted on the first machine.
func (b *unjoinedHosts) runJob(home string) ([]byte, error) {
	cmd := exec.Command(b.roost, "run", "--", "sh", "-c", "echo done")
	cmd.Dir = home
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home,
		"ROOST_DIR=" + b.hostDirectory("first").Dir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone.uid, Gid: someone.gid}}
	return cmd.CombinedOutput()
}

// printLogs prints the logs of the daemons.
func (b *unjoinedHosts) printLogs() {
	logs, _ := filepath.Glob(filepath.Join(b.dir, "*", "var", "lib", "roost", "log", "*"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		b.Logf("-- %s\n%s", log, text)
	}
}

func (b *unjoinedHosts) testInvalidTokens(used []string) {
	node := b.hostDirectory("first").NodeFile()
	token := func(args ...string) string {
		return b.mustRun("first", append([]string{"token", "--config", node}, args...)...)
	}
	again := append(append([]string{}, used[:4]...), "--root", b.hostDirectory("third").Root, "--name", "third")
	b.expectRefusal("it was used already", "third", again...)
	b.expectRefusal("roost token --desktop", "third",
		append(b.tokenLine(strings.TrimSuffix(strings.TrimSpace(token("--server")), " --server"), "third"),
			"--desktop")...)
	b.expectRefusal("it is for the node d", "third", b.tokenLine(token("--server", "--for", "d"), "third")...)
	b.expectRefusal("choose another with --name", "third",
		append(b.tokenLine(token("--server"), "third")[:6], "--name", "second")...)
	words := strings.Fields(token("--server"))
	b.expectRefusal("a letter of it is wrong", "third", "join", words[2], changeLetter(words[3]), "--root",
		b.hostDirectory("third").Root)
	b.expectRefusal("nothing listens on port 9799", "third", "join", "10.111.0.1:9799", words[3], "--root",
		b.hostDirectory("third").Root)
	b.expectRefusal("belongs to the pool lab, as second already", "second", "join", words[2], words[3], "--root",
		b.hostDirectory("second").Root)

	// A token of another pool, shown to this pool's authority.
	other := filepath.Join(b.dir, "other")
	b.mustRun("third", "init", "--name", "other", "--root", other)
	foreign := strings.Fields(b.mustRun("third", "init", "--name", "another", "--root", other+"2"))
	b.expectRefusal("is not the one that made the token", "third", "join", words[2], foreign[3], "--root",
		b.hostDirectory("third").Root)

	// None of it has made the machine a member, and the token is still valid.
	if _, err := os.Stat(b.hostDirectory("third").NodeFile()); err == nil {
		b.Errorf("third has a node file")
	}
	b.mustRun("third", append(words[1:], "--root", b.hostDirectory("third").Root, "--name", "third")...)
	if _, answer, code := b.runCommand("third", "leave", "--root", b.hostDirectory("third").Root); code != 0 ||
		!strings.HasPrefix(answer, "This machine has left") || !strings.Contains(answer, "If roost master runs") {
		b.Errorf("leave: exit %d, says\n%s", code, answer)
	}

	// A machine that has left joins again, under its name, as its owner's desktop.
	b.mustRun("third", b.tokenLine(token("--desktop"), "third")...)
	n, err := config.Load(b.hostDirectory("third").NodeFile())
	if err != nil || !n.NeedsGuard() || n.AuthorityAt != "10.111.0.1:9700" ||
		n.Startds[0].Listen[0] != "10.111.0.3:9703" {
		b.Errorf("the desktop: got %+v, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(b.hostDirectory("third").Dir(), "owner", "pause.json")); err != nil {
		b.Errorf("it is not paused: %v", err)
	}
}

// changeLetter changes one letter.
func changeLetter(token string) string {
	other := "A"
	if token[20] == 'A' {
		other = "B"
	}
	return token[:20] + other + token[21:]
}

// checkRevocation checks that the list of revoked certificates is distributed
// automatically.
func (b *unjoinedHosts) checkRevocation() {
	files := &config.TLSFiles{CA: b.hostDirectory("first").TLS().CA}
	b.mustRun("first", "revoke", "second", "--reason", "lost", "--config", b.hostDirectory("first").NodeFile())
	began := time.Now()
	listed := pollUntil(b.Context(), awaitTimeout, func() bool {
		list, err := pki.ReadRevocations(files)
		// the third machine's first certificate is on it, too
		return err == nil && list != nil && len(list.RevokedCertificateEntries) == 2
	})
	if !listed {
		b.Fatal("not on the list after a minute")
	}
	b.Logf("on the list of another node after %v", time.Since(began).Round(time.Millisecond))
	b.expectRefusal("revoked", "second", "leave", "--root", b.hostDirectory("second").Root)
}
