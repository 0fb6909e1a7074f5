package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// runInBubble runs a test of a guard with one startd on a fake clock. The startd's tasks
// are in one directory, and the first observations have been sent.
func runInBubble(t *testing.T, test func(t *testing.T, g *daemonContext, keys *fakeSource, freezer *fakeFreezer,
	startd *fakeStartd)) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		keys, freezer := newFakeSource(), &fakeFreezer{}
		g := testGuard(t, dir, keys)
		g.freeze = freezer.freeze
		stop := g.run(t)
		defer stop()
		startd := connect(t, g, "a", taskDir(t, dir, "1"))
		defer startd.disconnect()
		keys.see <- idle.SourceReading{Input: boottime.Now() - time.Hour}
		if s := <-startd.observations; s.GetUrgent() {
			t.Errorf("the first signs of a quiet machine are urgent: %v", s)
		}
		synctest.Wait()
		test(t, g, keys, freezer, startd)
	})
}

// TestAStartdThatActsIsLeftAlone checks that a startd has 100 ms to act on a key press.
func TestAStartdThatActsIsLeftAlone(t *testing.T) {
	runInBubble(t, func(t *testing.T, g *daemonContext, keys *fakeSource, freezer *fakeFreezer, startd *fakeStartd) {
		keys.see <- idle.SourceReading{Input: boottime.Now()}
		s := startd.urgent()
		time.Sleep(99 * time.Millisecond)
		startd.act(s.GetSequence())
		time.Sleep(time.Second)
		if freezer.count() != 0 {
			t.Errorf("the guard froze %v", freezer.frozen)
		}
	})
}

// TestAStartdThatSleepsIsActedFor checks that the guard freezes a startd's tasks after
// 100 ms. It must report them, and drop them when the startd has taken over.
func TestAStartdThatSleepsIsActedFor(t *testing.T) {
	runInBubble(t, func(t *testing.T, g *daemonContext, keys *fakeSource, freezer *fakeFreezer, startd *fakeStartd) {
		keys.see <- idle.SourceReading{Input: boottime.Now()}
		s := startd.urgent()
		time.Sleep(99 * time.Millisecond)
		if synctest.Wait(); freezer.count() != 0 {
			t.Fatal("it froze before its time")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); freezer.count() != 1 {
			t.Fatalf("froze %v", freezer.frozen)
		}
		reported := <-startd.observations
		if len(reported.GetFrozen()) != 1 || reported.GetSequence() <= s.GetSequence() {
			t.Fatalf("it does not say what it froze: %v", reported)
		}
		startd.act(s.GetSequence()) // late, and before it got the report
		synctest.Wait()
		if n := g.frozenNow(t); n != 1 {
			t.Fatalf("%d groups are remembered, want 1", n)
		}
		startd.act(reported.GetSequence())
		synctest.Wait()
		if n := g.frozenNow(t); n != 0 {
			t.Errorf("%d groups are remembered, want none", n)
		}
		for s := range startd.observations {
			if len(s.GetFrozen()) == 0 {
				break
			}
		}
	})
}

// TestNobodyIsThere checks that the tasks of a dead startd are frozen at once. This
// includes observations without an acknowledgement when it died.
func TestNobodyIsThere(t *testing.T) {
	runInBubble(t, func(t *testing.T, g *daemonContext, keys *fakeSource, freezer *fakeFreezer, startd *fakeStartd) {
		keys.see <- idle.SourceReading{Input: boottime.Now()}
		startd.urgent()
		startd.disconnect()
		if synctest.Wait(); freezer.count() != 1 {
			t.Fatalf("froze %v when it died with a duty", freezer.frozen)
		}
		began := time.Now()
		if r, err := g.setPause(t.Context(), newPause(0, "ann", "", time.Now(), "", 0), func() {},
			time.Now()); err != nil || r.GetPause().GetBy() != "ann" || time.Since(began) > 0 {
			t.Errorf("paused: %v, %v after %v", r, err, time.Since(began))
		}
		if freezer.count() != 2 {
			t.Errorf("froze %v, want the group again", freezer.frozen)
		}
	})
}

// TestAPauseWaitsForTheStartd checks that "roost pause" is answered when the tasks are
// frozen. The pause must survive a restart of the guard.
func TestAPauseWaitsForTheStartd(t *testing.T) {
	runInBubble(t, func(t *testing.T, g *daemonContext, keys *fakeSource, freezer *fakeFreezer, startd *fakeStartd) {
		go func() {
			s := startd.urgent()
			time.Sleep(40 * time.Millisecond)
			startd.act(s.GetSequence())
		}()
		began := time.Now()
		p := newPause(0, "ann", "a talk", time.Now(), "", 0)
		reply, err := g.setPause(t.Context(), p, func() {}, began)
		if took := time.Since(began); err != nil || took != 40*time.Millisecond || reply.GetTook() != int64(took) ||
			freezer.count() != 0 {
			t.Errorf("%v, %v after %v, froze %v", reply, err, took, freezer.frozen)
		}
		if mine, err := g.Mine(t.Context(), &wire.MineRequest{}); err != nil ||
			mine.GetSigns().GetPause().GetReason() != "a talk" || len(mine.GetStartds()) != 1 {
			t.Errorf("mine: %v, %v", mine, err)
		}
		if reply, err = g.setPause(t.Context(), nil, func() {}, time.Now()); err != nil || reply.GetPause() != nil {
			t.Errorf("resumed: %v, %v", reply, err)
		}
	})
}

// TestATimedPauseEnds checks that a pause ends at its time, and its file is deleted.
func TestATimedPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := testGuard(t, dir)
		defer g.run(t)()
		p := newPause(time.Now().Add(time.Hour).UnixNano(), "ann", "", time.Now(), g.boot, boottime.Now())
		if err := savePause(g.dir, p); err != nil {
			t.Fatal(err)
		}
		if _, err := g.setPause(t.Context(), p, func() {}, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		if synctest.Wait(); g.pauseNow(t) == nil {
			t.Error("it is over too soon")
		}
		time.Sleep(2 * time.Second)
		if synctest.Wait(); g.pauseNow(t) != nil {
			t.Error("it is not over")
		}
		if p, err := loadPause(g.dir, time.Now(), g.boot, boottime.Now()); p != nil || err != nil {
			t.Errorf("on disk: %+v, %v", p, err)
		}
	})
}

// TestAServerTakesNoNotice checks that only a pause freezes the tasks of a startd whose
// policy ignores people.
func TestAServerTakesNoNotice(t *testing.T) {
	runInBubble(t, func(t *testing.T, g *daemonContext, keys *fakeSource, freezer *fakeFreezer, startd *fakeStartd) {
		server := connect(t, g, "b", taskDir(t, t.TempDir(), "1"))
		synctest.Wait()
		server.disconnect()
		keys.see <- idle.SourceReading{Input: boottime.Now()}
		startd.act(startd.urgent().GetSequence())
		time.Sleep(time.Second)
		if freezer.count() != 0 {
			t.Fatalf("a key froze %v", freezer.frozen)
		}
		if _, err := g.setPause(t.Context(), newPause(0, "ann", "", time.Now(), "", 0), func() {},
			time.Now()); err != nil || freezer.count() != 2 {
			t.Errorf("a pause froze %v: %v", freezer.frozen, err)
		}
	})
}

// TestTheOwnersFile checks that the owner's file is reread when it changes. An error in
// it must make the machine unavailable, and leave the right to pause unchanged.
func TestTheOwnersFile(t *testing.T) {
	dir := t.TempDir()
	keys := newFakeSource()
	g := testGuard(t, dir, keys)
	g.state.update(idle.SourceReading{Name: "keys", Health: idle.Healthy, Coverage: idle.Hardware}, boottime.Now())
	file := filepath.Join(dir, "owner.hcl")
	for i, step := range []struct {
		text, busy, pause string
		owners            int
	}{
		{"", "", "", 0},
		{"owners = [\"ann\"]\nforeign_cpu = 2\n", "", "", 1},
		{"owners = 7\n", "the owner's file has a mistake: ", "", 1},
		{"paused = true\nowners = [\"ann\", \"bob\"]\n", "", "it says paused = true", 2},
	} {
		if step.text != "" {
			if err := os.WriteFile(file, []byte(step.text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		before := g.state.rules.version
		g.readRules()
		s := g.state.currentObservations()
		if !strings.HasPrefix(s.GetBusy(), step.busy) || step.busy == "" && s.GetBusy() != "" ||
			s.GetPause().GetReason() != step.pause || len(g.state.rules.pauseUsers) != step.owners {
			t.Errorf("step %d: busy %q, pause %v, owners %v", i, s.GetBusy(), s.GetPause(), g.state.rules.pauseUsers)
		}
		if step.text != "" && (s.GetOwnerRules() != before+1 || g.state.rules.version != before+1) {
			t.Errorf("step %d: version %d after %d", i, s.GetOwnerRules(), before)
		}
		g.readRules()
		if g.state.rules.version != s.GetOwnerRules() {
			t.Errorf("step %d: it was read again", i)
		}
	}
}

// frozenNow returns how many cgroups the guard froze that no startd has taken over.
func (g *daemonContext) frozenNow(t *testing.T) (n int) {
	if err := g.call(t.Context(), func() { n = len(g.records.frozenGroups()) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// hasReported reports whether a startd has reported.
func (g *daemonContext) hasReported(t *testing.T, name string) (ok bool) {
	if err := g.call(t.Context(), func() { ok = g.records.records[name] != nil }); err != nil {
		t.Fatal(err)
	}
	return ok
}

func (g *daemonContext) pauseNow(t *testing.T) (p *wire.Pause) {
	if err := g.call(t.Context(), func() { p = g.state.activePause() }); err != nil {
		t.Fatal(err)
	}
	return p
}

// lastObservations returns the last observations that the loop sent.
func (g *daemonContext) lastObservations(t *testing.T) (s *wire.GuardSigns) {
	if err := g.call(t.Context(), func() { s = g.state.lastSent }); err != nil {
		t.Fatal(err)
	}
	return s
}
