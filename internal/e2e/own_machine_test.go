package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestOwnMachinePage opens the page of a desktop's owner, pauses the machine and resumes
// it. It works with the daemons of the pool stopped, and ends with its command.
func TestOwnMachinePage(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	p, err := Start(t.Context(), PoolOptions{Roost: program(t), Dir: filepath.Join(openDir(t), "pool"), Nodes: 1,
		CPUs: 2, Desktop: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	cmd := exec.Command(p.Roost, "mine", "--web")
	cmd.Env = append(os.Environ(), "ROOST_DIR="+p.Dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
		t.Fatalf("roost mine --web printed %q", lines.Text())
	}
	link := lines.Text()
	base, _, _ := strings.Cut(link, "/login")
	browse(t, b, chromedp.Navigate(link))
	browse(t, b, chromedp.WaitVisible(".account"))
	for _, l := range looks() {
		l.use(t, b)
		browse(t, b, chromedp.Navigate(base+"/"))
		b.photograph(t, "own-machine-"+l.name)
		b.checkAccessibility(t, l.name)
		if browse(t, b, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth")) {
			t.Errorf("%s: the page is wider than the window", l.name)
		}
	}
	browse(t, b, chromedp.Click(`form[action="/pause"] button`))
	browse(t, b, chromedp.WaitVisible(".state.held"))
	b.photograph(t, "own-machine-paused")
	if stdout, _, _ := p.Command(t.Context(), "mine"); !strings.Contains(stdout, "paused until") {
		t.Errorf("after the button, roost mine says %s", stdout)
	}
	p.stopDaemons(t, "schedd", "collector", "negotiator")
	browse(t, b, chromedp.Navigate(base+"/"))
	browse(t, b, chromedp.Click(`form[action="/resume"] button`))
	browse(t, b, chromedp.WaitNotPresent(".state.held"))
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the command ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the command does not end")
	}
}

// stopDaemons stops daemons of some roles until the pool ends.
func (p *Pool) stopDaemons(t *testing.T, roles ...string) {
	t.Helper()
	state, err := p.State()
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for _, d := range state.Daemons {
		for _, role := range roles {
			if d.Role != role {
				continue
			}
			if err := syscall.Kill(d.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stopped++
			t.Cleanup(func() { syscall.Kill(d.PID, syscall.SIGCONT) })
		}
	}
	if stopped == 0 {
		t.Fatalf("no daemon of %v among %+v", roles, state.Daemons)
	}
}
