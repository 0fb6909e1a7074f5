package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/failpoint"
)

// The environment of the child process that TestKilledAccountant kills.
const (
	childDirectory = "ROOST_STORE_TEST_DIRECTORY"
	childPostgres  = "ROOST_STORE_TEST_POSTGRES"
	childFault     = "ROOST_STORE_TEST_FAULT" // "BATCH POINT": passes the point after so many batches
)

// killSize is how much TestKilledAccountant stores.
type killSize struct {
	jobs    int // of each of two feeds
	batch   int // entries
	stride  int // batches before a fault, at least
	compute int // batches from one roll-up to the next
}

// entriesVariable names how many entries the tests of kills, rebuilds and upgrades store,
// about. 1000000 is the aim, and takes half an hour.
const entriesVariable = "ROOST_STORE_TEST_ENTRIES"

// entriesPerJob is the mean of testFeed, rounded down.
const entriesPerJob = 12

func testJobs(usual int) int {
	if n, err := strconv.Atoi(os.Getenv(entriesVariable)); err == nil {
		return n / entriesPerJob / 2
	}
	return usual
}

func wantedKillSize() killSize {
	const usual = 60
	size := killSize{jobs: testJobs(usual), batch: 20, compute: 5}
	if size.jobs > usual {
		const batches = 500
		size.batch = max(20, size.jobs*2*entriesPerJob/batches)
		size.stride, size.compute = batches/16, 25
	}
	return size
}

// TestChild is an accountant that stores two feeds, as far as it gets.
func TestChild(t *testing.T) {
	o := Options{Directory: os.Getenv(childDirectory), Postgres: os.Getenv(childPostgres)}
	if o == (Options{}) {
		t.Skip("it is run by TestKilledAccountant")
	}
	batch, point, _ := strings.Cut(os.Getenv(childFault), " ")
	faultAt, _ := strconv.Atoi(batch)
	s, err := Open(context.Background(), o)
	must(t, err)
	defer s.Close()
	if rates, err := s.Rates(t.Context()); err != nil || len(rates) == 0 {
		must(t, errors.Join(err, s.AddRate(t.Context(), testRate())))
	}
	must(t, s.IngestMachines(t.Context(), testMachines()))
	size := wantedKillSize()
	feeds := [][]accounting.FeedEntry{testFeed(1, size.jobs), testFeed(2, size.jobs)}
	for batch := 0; ; batch++ {
		if batch == faultAt && point != "" {
			must(t, os.WriteFile(filepath.Join(os.Getenv("ROOST_FAULT_DIR"), point), nil, 0o600))
		}
		source := byte(1 + batch%2)
		feed := feeds[source-1]
		next := int(s.NextNumber(testSource(source))) - 1
		rest := feed[next:min(next+size.batch, len(feed))]
		must(t, s.Ingest(t.Context(), testSource(source), testHost(source), rest))
		if batch%size.compute == 0 {
			compute(t, s, min(workloadEnd, workloadStart+accounting.Millis(batch)*accounting.HourMillis))
		}
		other := testSource(3 - source)
		if point != "" && batch == faultAt+size.compute+1 {
			fmt.Println("\nchild is done")
			return
		}
		if len(rest) == 0 && int(s.NextNumber(other)) > len(feeds[2-source]) {
			break
		}
	}
	compute(t, s, workloadEnd)
	fmt.Println("\nchild is done")
}

// buildChild builds this test with faults.
func buildChild(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "child.test")
	out, err := exec.Command("go", "test", "-c", "-ldflags", "-s -w", "-tags",
		"faults,urfave_cli_no_docs,grpcnotrace", // with those of scripts/flags.sh
		"-o", program, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return program
}

// TestKilledAccountant kills an accountant at each point between its commits, twice. Then
// its store equals that of one that was left alone.
func TestKilledAccountant(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: it builds a program")
	}
	program := buildChild(t)
	size := wantedKillSize()
	want := cleanDigest(t, Options{Directory: t.TempDir()}, size.jobs)
	t.Logf("%s of jobs, %s", want[0], want[1])
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		faults := t.TempDir()
		run := func(fault string) (killed bool) {
			c := exec.Command(program, "-test.run", "^TestChild$", "-test.v", "-test.timeout", "3h")
			c.Env = append(os.Environ(), childDirectory+"="+o.Directory, childPostgres+"="+o.Postgres,
				childFault+"="+fault,
				"ROOST_FAULT_DIR="+faults)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
				return true
			}
			if err != nil || !hasLine(string(out), "child is done") {
				t.Fatalf("fault %q: %v\n%s", fault, err, out)
			}
			return false
		}
		kills := 0
		for round := range 2 {
			for i, point := range failpoint.AccountantNames() {
				if run(fmt.Sprintf("%d %s", size.stride+3*round+i%3, point)) {
					kills++
				}
				left, _ := filepath.Glob(filepath.Join(faults, "*"))
				for _, path := range left {
					os.Remove(path)
				}
			}
		}
		run("")
		if kills < 2*(len(failpoint.AccountantNames())-1) {
			t.Errorf("only %d kills", kills)
		}
		s := openStore(t, o)
		equalDigests(t, digest(t, s), want)
		must(t, s.Check(t.Context()))
		entries := len(testFeed(1, size.jobs)) + len(testFeed(2, size.jobs))
		t.Logf("%d kills, %d jobs, %d entries", kills, 2*size.jobs, entries)
	})
}

func hasLine(text, line string) bool {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if lines.Text() == line {
			return true
		}
	}
	return false
}
