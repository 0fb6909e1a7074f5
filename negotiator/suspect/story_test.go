package suspect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/story"
)

// TestStories runs the scripts in testdata. Commands:
//
//	pool N [drained]                               how many machines there are, and how many an administrator has drained
//	ended MACHINE VERDICT TASK OWNER [RAN] [TIMES]  attempts end: good, failed or spoiled; the job is the task up to its "["
//	tick DURATION
//	trust MACHINE
//
// After each the machines are judged, and what is news is printed.
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(t *testing.T) func(story.Step) string {
		p := &player{t: t, now: time.Unix(1000, 0)}
		return p.play
	})
}

type player struct {
	t            *testing.T
	book         Book
	now          time.Time
	pool, others int
}

func (p *player) play(s story.Step) string {
	var b strings.Builder
	lines := append([]string{strings.Join(s.Args, " ")}, s.Input...)
	for _, line := range lines {
		args := strings.Fields(line)
		switch {
		case len(args) == 0:
		case s.Command == "pool":
			fmt.Sscan(line, &p.pool, &p.others)
		case s.Command == "ended":
			p.ended(args, &b)
		case s.Command == "trust":
			p.book.Trust(args[0])
		case s.Command == "tick":
			d, err := time.ParseDuration(args[0])
			if err != nil {
				p.t.Fatal(err)
			}
			p.now = p.now.Add(d)
		default:
			p.t.Fatalf("unknown command %s", s.Command)
		}
	}
	for _, d := range p.book.Judge(p.now, p.pool, p.others) {
		fmt.Fprintf(&b, "%s is drained for %v: %s\n", d.Machine, d.Until.Sub(p.now), d.Reason)
	}
	if list := p.book.Trials(p.now); len(list) > 0 {
		fmt.Fprintf(&b, "on trial: %s\n", strings.Join(list, " "))
	}
	p.book.check()
	return b.String()
}

func (p *player) ended(args []string, b *strings.Builder) {
	o := Outcome{Machine: args[0], Task: args[2], Owner: args[3], Ran: time.Second}
	o.Job, _, _ = strings.Cut(o.Task, "[")
	o.Verdict = map[string]Verdict{"good": Good, "failed": Failed, "spoiled": Spoiled}[args[1]]
	if o.Verdict == Spoiled {
		o.Reason = "no scratch directory"
	}
	if len(args) > 4 {
		o.Ran, _ = time.ParseDuration(args[4])
	}
	times := 1
	if len(args) > 5 {
		fmt.Sscan(args[5], &times)
	}
	for range times {
		if a, ok := p.book.Ended(p.now, o); ok {
			fmt.Fprintf(b, "%s is kept from %s for %v: %s\n", a.Task, a.Machine, a.Until.Sub(p.now), a.Reason)
		}
	}
}

// TestRandom plays many outcomes: the sums are right after each, one user's jobs drain nothing, and never too many machines are drained.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b Book
		now, pool, hole := time.Unix(1000, 0), 1+r.IntN(30), r.IntN(3)
		for range 400 {
			now = now.Add(time.Duration(r.IntN(5)) * time.Second)
			job := r.IntN(20)
			o := Outcome{
				Machine: fmt.Sprint("m", r.IntN(pool)), Job: fmt.Sprint(job), Task: fmt.Sprintf("%d[%d]", job, r.IntN(50)), Owner: fmt.Sprint("u", job%4),
				Ran: time.Duration(r.IntN(100)) * time.Second,
			}
			switch {
			case o.Owner == "u3": // nothing that this one submits works
				o.Verdict, o.Ran = Failed, time.Second
			case hole == 1 && o.Machine == "m0":
				o.Verdict, o.Ran = Failed, time.Second
			}
			b.Ended(now, o)
			for _, d := range b.Judge(now, pool, 0) {
				if hole != 1 || d.Machine != "m0" {
					t.Fatalf("seed %d: %s is drained: %s", seed, d.Machine, d.Reason)
				}
			}
			if n := len(b.Drained(now)); n > max(1, pool/DrainPart) || n >= pool {
				t.Fatalf("seed %d: %d of %d machines are drained", seed, n, pool)
			}
			b.check()
		}
	}
}
