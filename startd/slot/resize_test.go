package slot

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// resizePlay is a machine whose claims become larger and smaller.
type resizePlay struct{ *allocPlay }

func newResizePlay(t *testing.T) resizePlay { return resizePlay{newAllocPlay(t)} }

// running is a claim of so many cores with an attempt.
func (p resizePlay) running(cores int, inside ClaimID, alloc bool) *Claim {
	p.t.Helper()
	c, err := p.ask(cores, inside, alloc)
	if err != nil {
		p.t.Fatal(err)
	}
	p.start(c)
	return c
}

func size(cores float64) roost.Resources {
	return roost.Resources{CPU: roost.MilliCPU(cores * 1000), Memory: roost.Bytes(cores * float64(roost.GiB))}
}

// resize asks for another size. The kernel refuses it with a reason, if that is not
// empty. It returns what the schedd is told.
func (p resizePlay) resize(c *Claim, to roost.Resources, refusal string) (answers []ReportResized) {
	p.t.Helper()
	ResizesOf(p.c).Request(p.now, "s1", c.Attempt, to)
	p.c.Check()
	for effects, _ := p.c.Todo(p.now); len(effects) > 0; effects, _ = p.c.Todo(p.now) {
		for _, e := range effects {
			switch e := e.(type) {
			case ResizeClaim:
				p.c.Check()
				ResizesOf(p.c).Done(p.now, e.Claim.ID, refusal)
			case ReportResized:
				answers = append(answers, e)
			}
			p.c.Check()
		}
	}
	return answers
}

// expect is resize with what the schedd must be told.
func (p resizePlay) expect(c *Claim, to roost.Resources, want string) {
	p.t.Helper()
	had := c.Resources
	got := p.resize(c, to, "")
	if len(got) != 1 || got[0].To != to || want == "" && got[0].Refusal != "" ||
		!strings.Contains(got[0].Refusal, want) {
		p.t.Fatalf("%v from %v to %v: got %+v, want %q", c, had, to, got, want)
	}
	if is := c.Resources; want == "" && is != to || want != "" && is != had {
		p.t.Fatalf("%v has %v", c, is)
	}
}

// TestResizeClaim makes claims larger and smaller, as far as the machine has room.
func TestResizeClaim(t *testing.T) {
	p := newResizePlay(t)
	c := p.running(1, 0, false)
	before := p.c.free.LeftForBatch()
	p.expect(c, size(2), "")
	if left := p.c.free.LeftForBatch(); left.CPU != before.CPU-1000 || left.Memory != before.Memory-roost.GiB {
		t.Errorf("left are %v, before %v", left, before)
	}
	p.expect(c, size(2), "") // as it is already
	p.expect(c, size(0.5), "")
	p.expect(c, size(1000), "are there for it")
	p.expect(c, roost.Resources{}, "a claim of")
	more := size(1)
	more.GPUs = 1
	p.expect(c, more, "only CPU and memory")
	const uses = "its processes use more"
	if got := p.resize(c, size(1), uses); len(got) != 1 || got[0].Refusal != uses || c.Resources != size(0.5) {
		t.Errorf("got %+v, and it has %v", got, c.Resources)
	}
	p.end(c)
	if got := p.resize(c, size(1), ""); len(got) != 0 {
		t.Errorf("an attempt that has ended is answered for: %+v", got)
	}
}

// TestResizeSteps holds the larger size between the steps, and does what was asked for
// last.
func TestResizeSteps(t *testing.T) {
	p := newResizePlay(t)
	c := p.running(2, 0, false)
	ResizesOf(p.c).Request(p.now, "s1", c.Attempt, roost.Resources{CPU: 1000, Memory: 3 * roost.GiB})
	p.c.Check()
	effects, _ := p.c.Todo(p.now)
	step, ok := effects[0].(ResizeClaim)
	if want := (roost.Resources{CPU: 2000, Memory: 3 * roost.GiB}); !ok || step.Held != want ||
		c.Placement.Parts[0].CPU != want.CPU || c.Placement.Parts[0].Memory != want.Memory {
		t.Fatalf("got %+v, and %+v is held", effects, c.Placement)
	}
	ResizesOf(p.c).Request(p.now, "s1", c.Attempt, size(3))
	ResizesOf(p.c).Request(p.now, "other", c.Attempt, size(1)) // not its own
	p.c.Check()
	ResizesOf(p.c).Done(p.now, c.ID, "")
	effects, _ = p.c.Todo(p.now)
	if step, ok = effects[0].(ResizeClaim); !ok || step.To != size(3) || len(effects) != 1 {
		t.Fatalf("got %+v", effects)
	}
	p.c.Ended(p.now, c.ID, c.Attempt) // meanwhile
	p.c.Check()
	ResizesOf(p.c).Done(p.now, c.ID, "")
	p.c.Check()
	if c.Resources != size(3) {
		t.Errorf("it has %v", c.Resources)
	}
}

// TestResizeAlloc makes an alloc larger, what is inside larger, and the alloc no smaller
// than that.
func TestResizeAlloc(t *testing.T) {
	p := newResizePlay(t)
	alloc := p.running(2, 0, true)
	inside := p.running(1, alloc.ID, false)
	p.expect(inside, size(3), "its alloc has 2 cores")
	p.expect(alloc, size(3), "")
	p.expect(inside, size(3), "")
	p.expect(alloc, size(2), "inside it are 2[0].s1 with 3 cpus")
	p.expect(inside, size(1), "")
	p.expect(alloc, size(1), "")
	if _, err := p.ask(1, alloc.ID, false); err == nil {
		t.Error("an alloc that is full has room")
	}
}

// TestResizeRandom makes claims larger and smaller at random, in steps that others come
// between, and checks the books after each.
func TestResizeRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newResizePlay(t)
		var claims []*Claim
		var pending []ClaimID
		for range 60 {
			switch k := r.IntN(6); {
			case k == 0 && len(claims) < 6:
				inside := ClaimID(0)
				if len(claims) > 0 && claims[0].Info.Alloc && claims[0].State == Busy {
					inside = claims[0].ID
				}
				if c, err := p.ask(1+r.IntN(2), inside, len(claims) == 0); err == nil {
					p.start(c)
					claims = append(claims, c)
				}
			case k < 4 && len(claims) > 0:
				c := claims[r.IntN(len(claims))]
				ResizesOf(p.c).Request(p.now, "s1", c.Attempt, size(0.5*float64(1+r.IntN(8))))
			case k == 4 && len(pending) > 0:
				ResizesOf(p.c).Done(p.now, pending[0], []string{"", "it uses more"}[r.IntN(2)])
				pending = pending[1:]
			case k == 5 && len(claims) > 1 && r.IntN(4) == 0:
				last := claims[len(claims)-1]
				if claims = claims[:len(claims)-1]; last.State == Busy {
					p.c.Ended(p.now, last.ID, last.Attempt)
				}
			}
			p.c.Check()
			p.now += time.Millisecond
			effects, _ := p.c.Todo(p.now)
			for _, e := range effects {
				if e, ok := e.(ResizeClaim); ok {
					pending = append(pending, e.Claim.ID)
				}
			}
			p.c.Check()
		}
	}
}

// TestRequirementsOfRunningTask checks whether a machine satisfies other requirements for
// a claim that it has. What the claim holds counts as free.
func TestRequirementsOfRunningTask(t *testing.T) {
	p := newResizePlay(t)
	c := p.running(1, 0, false)
	free := func(ad *classad.Ad) float64 { n, _ := ad.Eval(roost.AttrCpus, nil).Number(); return n }
	left := free(p.c.Ad())
	for _, test := range []struct{ requirements, want string }{
		{"true", ""},
		{"TARGET.NoSuchAttribute == 1", "undefined"},
		{"TARGET.TotalCpus < 0", "false"},
		{fmt.Sprintf("TARGET.Cpus >= %v", left+1), ""},
		{fmt.Sprintf("TARGET.Cpus >= %v", left+2), "false"},
	} {
		ad, err := classad.Parse("[ Requirements = " + test.requirements + " ]")
		if err != nil {
			t.Fatal(err)
		}
		got := ResizesOf(p.c).CheckRequirements(c, ad, &classad.EvalEnv{Steps: 1000})
		if (got == nil) != (test.want == "") || got != nil && !strings.Contains(got.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.requirements, got, test.want)
		}
	}
	if err := ResizesOf(p.c).CheckRequirements(c, classad.New(), nil); err != nil {
		t.Errorf("an ad without requirements: %v", err)
	}
	if got := free(p.c.Ad()); got != left {
		t.Errorf("%v cores are free after the question, before %v", got, left)
	}
	p.c.Check()
}
