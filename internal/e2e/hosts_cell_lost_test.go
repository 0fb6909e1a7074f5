package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCellLost damages the disks of three central managers: one disk fills up, and two of
// three are lost for good. State from before the replicated log existed must be in the
// log from the first start on.
func TestCellLost(t *testing.T) {
	t.Parallel()
	h := makeCell(t)
	h.writeFormerState("central3")
	for _, name := range []string{"central1", "central2", "central3"} {
		h.mountSmallDisk(name)
	}
	h.startAll()
	h.setConcurrencyLimit()
	steady, g := h.submitSteadyTask("steady")
	for _, tt := range []struct {
		name string
		run  func(*cellHostPool)
	}{
		{"what was kept before is taken over", (*cellHostPool).formerStateIsTakenOver},
		{"the disk of a follower is full", (*cellHostPool).followerIsFull},
		{"the disk of the leader is full", (*cellHostPool).leaderIsFull},
		{"the majority is lost for good", (*cellHostPool).majorityIsLost},
	} {
		if !t.Run(tt.name, func(t *testing.T) {
			part := *h
			part.hostPool = h.forSubtest(t)
			tt.run(&part)
			part.awaitThreeVoters()
			part.awaitAgreement()
			h.batches = part.batches
		}) {
			t.FailNow()
		}
	}
	h.checkUndisturbed(steady, "steady", g)
	h.auditCell()
}

// formerSeconds is the usage in a negotiator's state from before the replicated log.
const formerSeconds = 7200000 // core-seconds

var formerFiles = map[string]string{
	"usage.json": fmt.Sprintf(
		`{"version":1,"accounts":[{"owner":%q,"priority":4,"core_seconds":%d,"factor":1000,"at":"2026-01-01T00:00:00Z"}]}`, formerLog, formerSeconds,
	),
	"epoch": "1767225600\n",
}

// writeFormerState writes such state into a central manager's directory.
func (h *cellHostPool) writeFormerState(name string) {
	for file, text := range formerFiles {
		path := filepath.Join(h.nodes[name].dir, "negotiator", file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			h.Fatal(err)
		}
	}
}

// usageOf returns a user's usage from roost shares, in core-hours; negative if the user
// is unknown.
func (h *cellHostPool) usageOf(user string) float64 {
	h.Helper()
	var all struct{ Submitters []submitterRecord }
	if !h.querySubmitNode(&all, "shares") {
		return -1
	}
	for _, s := range all.Submitters {
		if s.User == user {
			return s.Hours
		}
	}
	return -1
}

// formerStateIsTakenOver checks that the former state of one manager is adopted when it
// leads. That must happen with any earlier leader, and only once.
func (h *cellHostPool) formerStateIsTakenOver() {
	taken := func() bool { return h.usageOf(formerLog) == formerSeconds/3600 }
	for tries := 0; h.awaitLeader() != "central3"; tries++ {
		if tries == 10 {
			h.Fatal("central3 never leads")
		}
		old := h.nodes[h.awaitLeader()]
		old.killMaster()
		next := ""
		h.awaitTrue("another leads", func() bool {
			next = h.status("central3").leader()
			return next != "" && next != old.name
		})
		if next != "central3" { // whose log then goes further than that of the one that comes back
			h.nodes[next].killMaster()
			old.start()
			h.awaitTrue("central3 leads", func() bool { return h.status("central3").leader() == "central3" })
			old = h.nodes[next]
		}
		old.start()
		h.awaitThreeVoters()
	}
	h.awaitTrue("what was used before stands in the log", taken)
	h.awaitTrue("the files are put aside", func() bool {
		for file := range formerFiles {
			path := filepath.Join(h.nodes["central3"].dir, "negotiator", file)
			_, gone := os.Stat(path)
			if _, err := os.Stat(path + ".old"); err != nil || !errors.Is(gone, fs.ErrNotExist) {
				return false
			}
		}
		return true
	})
	h.nodes["central3"].killMaster()
	h.awaitTrue("another leads", func() bool {
		s := h.status("central1")
		return s.leader() != "" && s.leader() != "central3"
	})
	h.nodes["central3"].start()
	h.awaitTrue("the next leader has it, too", taken)
}

// majorityIsLost follows roost-cell(1).
func (h *cellHostPool) majorityIsLost() {
	h.administer("central1", "quota", "set", "--tasks", "7", "--force", formerLog)
	h.awaitThreeVoters()
	survivor := otherCentrals(h.awaitLeader())[0]
	gone := otherCentrals(survivor)
	n, used := h.nodes[survivor], h.usageOf(formerLog)
	epoch := h.lastEpoch()
	before := h.submitArray("lost-before")
	for _, c := range gone {
		h.net.crashHost(c)
		<-h.nodes[c].done
	}
	during := h.submitArray("lost-during")
	h.awaitTrue("the one that is left decides nothing", func() bool {
		s := h.status(survivor)
		return s.Spare == -1 && s.Leader == ""
	})

	h.expectRefusal(survivor, "--force", "recover")
	h.expectRefusal(survivor, "stop the negotiator", "recover", "--force")
	n.stopMaster()
	if out, err := h.runCell(survivor, "recover", "--force"); err != nil ||
		!strings.Contains(out, "is a cell of its own") {
		h.Fatalf("recover: %v: %s", err, out)
	}
	n.start()
	h.awaitTrue("it leads alone", func() bool {
		s := h.status(survivor)
		return s.leader() == survivor && len(s.Members) == 1 && s.Spare == 0
	})
	h.awaitArray(before)
	h.awaitArray(during)
	if now := h.lastEpoch(); now <= epoch+1000 { // others may have led without leaving a trace
		h.Errorf("epoch %d after %d", now, epoch)
	}
	h.checkNothingLost(survivor, used)

	// A manager that is not dead after all comes back with its disk.
	stray := h.nodes[gone[0]]
	stray.start()
	h.awaitTrue("the stray one finds that it is of another cell", func() bool {
		return strings.Contains(stray.logText(), "is of another cell")
	})
	if s := h.status(survivor); s.leader() != survivor || len(s.Members) != 1 {
		h.Errorf("with a stray one: %+v", s)
	}
	h.expectRefusal(survivor, "is of another cell", "add", centrals[stray.name]+":9702")
	stray.stopMaster()
	h.emptyDirectory(filepath.Join(stray.dir, "negotiator", "replica"))
	stray.start()
	h.awaitTrue(stray.name+" is added", func() bool {
		_, err := h.runCell(survivor, "add", centrals[stray.name]+":9702")
		return err == nil
	})
	h.addCentralManager(filepath.Join(h.dir, "ca"), "central4")
	h.nodes["central4"].start()
	h.awaitTrue("central4 is added", func() bool {
		_, err := h.runCell(survivor, "add", centrals["central4"]+":9702")
		return err == nil
	})

	// The cell tolerates the loss of one manager again.
	h.awaitTrue("a whole cell", func() bool {
		s := h.status(survivor)
		return s.Spare == 1 && len(s.Members) == 3 && s.leader() != ""
	})
	n.killMaster()
	h.awaitArray(h.submitArray("lost-after"))
	n.start()
	h.checkNothingLost(stray.name, used)
}

// expectRefusal checks that a command is refused with certain words.
func (h *cellHostPool) expectRefusal(on, words string, args ...string) {
	h.Helper()
	if out, err := h.runCell(on, args...); err == nil || !strings.Contains(out, words) {
		h.Errorf("roost cell %s on %s: %v: %q, want %q", strings.Join(args, " "), on, err, out, words)
	}
}

// checkNothingLost checks that no usage and no setting is lost.
func (h *cellHostPool) checkNothingLost(on string, used float64) {
	h.Helper()
	h.awaitTrue("the schedd hears of what was used", func() bool { return h.usageOf(formerLog) == used })
	for _, what := range []struct{ table, want string }{{"quota", formerLog}, {"limit", "program"}} {
		if out := h.administer(on, what.table); !strings.Contains(out, what.want) {
			h.Errorf("roost %s knows nothing of %s: %s", what.table, what.want, out)
		}
	}
}

// lastEpoch returns the highest epoch in which a central manager has led.
func (h *cellHostPool) lastEpoch() (last uint64) {
	for _, n := range h.nodes {
		for _, m := range leadsPattern.FindAllStringSubmatch(n.logText(), -1) {
			var epoch uint64
			fmt.Sscan(m[1], &epoch)
			last = max(last, epoch)
		}
	}
	return last
}

// emptyDirectory removes the contents of a directory.
func (h *cellHostPool) emptyDirectory(dir string) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		h.Fatal(err)
	}
}
