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
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/settle"
)

// beginners are machines of which nothing is known to each other but an address, with the programs on them.
type beginners struct {
	*testing.T
	net        *network
	roost, dir string
	masters    []*exec.Cmd
}

// place is where a machine's files are.
func (b *beginners) place(host string) settle.Place {
	return settle.Place{Root: filepath.Join(b.dir, host)}
}

// on is a command on a machine. No systemd is running there.
func (b *beginners) on(host string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", b.net.space(host), b.roost}, args...)...)
	cmd.Dir = "/"
	return cmd
}

// try runs one to its end.
func (b *beginners) try(host string, args ...string) (stdout, stderr string, code int) {
	b.Helper()
	cmd := b.on(host, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (b *beginners) must(host string, args ...string) string {
	b.Helper()
	stdout, stderr, code := b.try(host, args...)
	if code != 0 {
		b.Fatalf("roost %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// refused runs one that has to fail with those words.
func (b *beginners) refused(says, host string, args ...string) {
	b.Helper()
	_, stderr, code := b.try(host, args...)
	if code == 0 || !strings.Contains(stderr, says) {
		b.Errorf("roost %s: exit %d, want one that says %q\n%s", strings.Join(args, " "), code, says, stderr)
	}
}

// master starts the daemons of a machine, as its owner does where there is no systemd.
func (b *beginners) master(host string) {
	b.Helper()
	cmd := b.on(host, "master", "--config", b.place(host).NodeFile())
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

// line is what a token prints, in words, with what else the machine says of itself.
func (b *beginners) line(text, host string, more ...string) []string {
	words := strings.Fields(text)
	if len(words) < 4 || words[0] != "roost" {
		b.Fatalf("got the line %q", text)
	}
	return append(append(words[1:], "--root", b.place(host).Root, "--name", host), more...)
}

// From nothing to a second machine that runs a job, over a network that nobody trusts; and every way in that is none.
func TestMachinesJoin(t *testing.T) {
	t.Parallel()
	b := &beginners{T: t, net: newNetwork(t), dir: openDir(t), roost: program(t)}
	for host, address := range map[string]string{"first": "10.111.0.1", "second": "10.111.0.2", "third": "10.111.0.3"} {
		b.net.attach(host, address)
	}
	began := time.Now()
	first := b.must("first", "init", "--name", "lab", "--root", b.place("first").Root)
	b.master("first")
	deadline := time.Now().Add(patience)
	joined := b.line(first, "second")
	for { // as a person does who is faster than the first machine
		_, stderr, code := b.try("second", joined...)
		if code == 0 {
			break
		}
		if !strings.Contains(stderr, "nothing listens on port 9700") || time.Now().After(deadline) {
			t.Fatalf("join: exit %d\n%s", code, stderr)
		}
	}
	b.master("second")
	home := filepath.Join(b.dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, int(someone.uid), int(someone.gid))); err != nil {
		t.Fatal(err)
	}
	out, err := b.run(home)
	for strings.Contains(string(out), "no pool is running") && time.Now().Before(deadline) { // the first machine's schedd is not up yet
		out, err = b.run(home)
	}
	took := time.Since(began)
	if err != nil || !strings.Contains(string(out), "done") {
		b.tell()
		t.Fatalf("roost run: %v\n%s", err, out)
	}
	t.Logf("from nothing to a job on the second machine, two commands each: %v", took.Round(time.Millisecond))
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	t.Run("refused", func(t *testing.T) { part := *b; part.T = t; part.waysThatAreNone(joined) })
	t.Run("revoked", func(t *testing.T) { part := *b; part.revoked() })
}

// run has a job run that somebody submits on the first machine.
func (b *beginners) run(home string) ([]byte, error) {
	cmd := exec.Command(b.roost, "run", "--", "sh", "-c", "echo done")
	cmd.Dir = home
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "ROOST_DIR=" + b.place("first").Dir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone.uid, Gid: someone.gid}}
	return cmd.CombinedOutput()
}

// tell prints the logs of the daemons.
func (b *beginners) tell() {
	logs, _ := filepath.Glob(filepath.Join(b.dir, "*", "var", "lib", "roost", "log", "*"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		b.Logf("-- %s\n%s", log, text)
	}
}

func (b *beginners) waysThatAreNone(used []string) {
	node := b.place("first").NodeFile()
	token := func(args ...string) string {
		return b.must("first", append([]string{"token", "--config", node}, args...)...)
	}
	again := append(append([]string{}, used[:4]...), "--root", b.place("third").Root, "--name", "third")
	b.refused("it was used already", "third", again...)
	b.refused("roost token --desktop", "third", append(b.line(strings.TrimSuffix(strings.TrimSpace(token("--server")), " --server"), "third"), "--desktop")...)
	b.refused("it is for the node d", "third", b.line(token("--server", "--for", "d"), "third")...)
	b.refused("choose another with --name", "third", append(b.line(token("--server"), "third")[:6], "--name", "second")...)
	words := strings.Fields(token("--server"))
	b.refused("a letter of it is wrong", "third", "join", words[2], swap(words[3]), "--root", b.place("third").Root)
	b.refused("nothing listens on port 9799", "third", "join", "10.111.0.1:9799", words[3], "--root", b.place("third").Root)
	b.refused("belongs to the pool lab, as second already", "second", "join", words[2], words[3], "--root", b.place("second").Root)

	// A token of another pool, shown to this one's authority.
	other := filepath.Join(b.dir, "other")
	b.must("third", "init", "--name", "other", "--root", other)
	foreign := strings.Fields(b.must("third", "init", "--name", "another", "--root", other+"2"))
	b.refused("is not the one that made the token", "third", "join", words[2], foreign[3], "--root", b.place("third").Root)

	// None of it has made the machine a member, and the token is as good as before.
	if _, err := os.Stat(b.place("third").NodeFile()); err == nil {
		b.Errorf("third has a node file")
	}
	b.must("third", append(words[1:], "--root", b.place("third").Root, "--name", "third")...)
	if _, said, code := b.try("third", "leave", "--root", b.place("third").Root); code != 0 || !strings.HasPrefix(said, "This machine has left") || !strings.Contains(said, "If roost master runs") {
		b.Errorf("leave: exit %d, says\n%s", code, said)
	}

	// A machine that has left joins again, under its name, as its owner's desktop.
	b.must("third", b.line(token("--desktop"), "third")...)
	n, err := config.Load(b.place("third").NodeFile())
	if err != nil || !n.Guarded() || n.AuthorityAt != "10.111.0.1:9700" || n.Startds[0].Listen[0] != "10.111.0.3:9703" {
		b.Errorf("the desktop: got %+v, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(b.place("third").Dir(), "owner", "pause.json")); err != nil {
		b.Errorf("it is not paused: %v", err)
	}
}

// swap changes one letter.
func swap(token string) string {
	other := "A"
	if token[20] == 'A' {
		other = "B"
	}
	return token[:20] + other + token[21:]
}

// revoked holds that the list of revoked certificates travels by itself.
func (b *beginners) revoked() {
	files := &config.TLS{CA: b.place("first").TLS().CA}
	b.must("first", "revoke", "second", "--reason", "lost", "--config", b.place("first").NodeFile())
	began := time.Now()
	listed := poll(b.Context(), time.Minute, func() bool {
		list, err := pki.ReadRevocations(files)
		return err == nil && list != nil && len(list.RevokedCertificateEntries) == 2 // the third machine's first is on it, too
	})
	if !listed {
		b.Fatal("not on the list after a minute")
	}
	b.Logf("on the list of another node after %v", time.Since(began).Round(time.Millisecond))
	b.refused("revoked", "second", "leave", "--root", b.place("second").Root)
}
