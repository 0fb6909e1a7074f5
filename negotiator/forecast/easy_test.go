package forecast

import (
	"bufio"
	"compress/gzip"
	"container/heap"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestEASY runs logs of the Parallel Workloads Archive and compares the start of each job with published schedules: those of the pyss simulator, as
// in Gaussier et al., Improving Backfilling by using Machine Learning to predict Running Times (SC'15).
func TestEASY(t *testing.T) {
	for _, log := range []string{"KTH-SP2", "CTC-SP2"} {
		t.Run(log, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "data", "swf", log+".easy.swf.gz")
			if dir := os.Getenv("ROOST_SHARED"); dir != "" {
				path = filepath.Join(dir, "data", "swf", log+".easy.swf.gz")
			}
			f, err := os.Open(path)
			if os.IsNotExist(err) {
				t.Skipf("SKIPPED: the published schedule is not here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			z, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			procs, jobs := readSWF(t, z)
			want := make([]Seconds, len(jobs))
			for i, j := range jobs {
				want[i] = j.submit + j.wait
			}
			newPool(procs, jobs).run()
			differ := 0
			for i, j := range jobs {
				if j.start != want[i] {
					if differ++; differ <= 5 {
						t.Errorf("job %d of %d processors for %d s, submitted at %d, starts at %d, want %d", j.id, j.procs, j.request, j.submit, j.start, want[i])
					}
				}
			}
			t.Logf("%d jobs on %d processors: %d starts differ", len(jobs), procs, differ)
		})
	}
}

// job is one line of a log, in seconds.
type job struct {
	id, procs                     int
	submit, wait, length, request Seconds
	start                         Seconds
}

// readSWF reads a log in the Standard Workload Format: fields 1 id, 2 submit, 3 wait, 4 run time, 5 processors, 8 of the request, 9 its length.
func readSWF(t *testing.T, r io.Reader) (procs int, jobs []*job) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text := lines.Text()
		if name, value, ok := strings.Cut(strings.TrimPrefix(text, "; "), ": "); ok && name == "MaxProcs" {
			procs, _ = strconv.Atoi(strings.TrimSpace(value))
		}
		if strings.HasPrefix(text, ";") {
			continue
		}
		var n [9]int64
		for i, f := range strings.Fields(text)[:9] {
			var err error
			if n[i], err = strconv.ParseInt(f, 10, 64); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		jobs = append(jobs, &job{id: int(n[0]), submit: n[1], wait: n[2], length: n[3], procs: int(max(n[4], n[7])), request: n[8], start: -1})
	}
	if lines.Err() != nil || procs == 0 || len(jobs) == 0 {
		t.Fatalf("%d jobs on %d processors: %v", len(jobs), procs, lines.Err())
	}
	slices.SortStableFunc(jobs, func(a, b *job) int {
		if a.submit != b.submit {
			return int(a.submit - b.submit)
		}
		return a.id - b.id
	})
	return procs, jobs
}

// event is a submission or an end; at equal times submissions come first, and then whatever was planned first.
type event struct {
	at    Seconds
	end   bool
	order int
	*job
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	a, b := e[i], e[k]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.end != b.end:
		return b.end
	}
	return a.order < b.order
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// pool is a cluster of processors as one machine, with a queue.
type pool struct {
	machine Machine
	queue   []*job
	events  events
	planned int
}

func newPool(procs int, jobs []*job) *pool {
	p := &pool{machine: Machine{Free: cores(procs)}}
	for _, j := range jobs {
		p.plan(event{at: j.submit, job: j})
	}
	return p
}

func cores(n int) roost.Resources { return roost.Resources{CPU: 1000 * roost.MilliCPU(n)} }

func (p *pool) plan(e event) {
	p.planned++
	e.order = p.planned
	heap.Push(&p.events, e)
}

// run plays all events. What a job has asked for is free at the end of what it asked for, though its end may be told of a moment later; after a
// submission only a job that would fit now is reason to look at the queue.
func (p *pool) run() {
	for len(p.events) > 0 {
		e := heap.Pop(&p.events).(event)
		if e.end {
			p.end(e)
			p.schedule(e.at)
			continue
		}
		p.queue = append(p.queue, e.job)
		if p.machine.Fits(e.at, 1, cores(e.procs)) {
			p.schedule(e.at)
		}
	}
}

// end gives back what a job has, if it has not asked for less time than it took.
func (p *pool) end(e event) {
	m := &p.machine
	planned := End(e.start, e.request)
	i := slices.IndexFunc(m.Releases, func(r Release) bool { return r.At == planned && r.Resources == cores(e.procs) })
	m.Releases = slices.Delete(m.Releases, i, i+1)
	m.Free = m.Free.Add(cores(e.procs))
}

// schedule starts those at the head of the queue that fit, holds for the first that does not, and backfills.
func (p *pool) schedule(now Seconds) {
	m := &p.machine
	for len(p.queue) > 0 && m.Fits(now, p.queue[0].request, cores(p.queue[0].procs)) {
		p.start(now, p.queue[0])
		p.queue = p.queue[1:]
	}
	if len(p.queue) < 2 {
		return
	}
	head := p.queue[0]
	at, _, ok := Earliest([]*Machine{m}, now, head.request, cores(head.procs), 1)
	if !ok {
		panic("a job that is larger than the pool")
	}
	m.Holds = []Hold{{at, End(at, head.request), cores(head.procs)}}
	rest := p.queue[:1]
	for _, j := range p.queue[1:] {
		if m.Fits(now, j.request, cores(j.procs)) {
			p.start(now, j)
		} else {
			rest = append(rest, j)
		}
	}
	p.queue, m.Holds = rest, nil
}

func (p *pool) start(now Seconds, j *job) {
	p.machine.Start(now, j.request, cores(j.procs))
	j.start = now
	p.plan(event{at: now + min(j.length, j.request), end: true, job: j})
}
