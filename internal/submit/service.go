package submit

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// serviceSettings and backoffSettings are the settings of a service block, and of the
// backoff block in it.
var (
	serviceSettings = []string{"lease", "lost_after", "overlap", "restarts", "window", "drain", "stop_url",
		"stop_port"}
	backoffSettings = []string{"first", "max"}
)

const serviceExample = "service { }"

// refusedInService are settings of a job that contradict a service, and why.
var refusedInService = map[string]string{
	"walltime": "A service runs until roost rm removes it. Remove walltime, or the service block.",
	"success_exit_code": "A task of a service is started again however it ends. Remove success_exit_code, or the " +
		"service block.",
	"retries":     "A task of a service is started again whenever it ends. Remove retries, or the service block.",
	"run_count":   "A task of a service is started again whenever it ends. Remove run_count, or the service block.",
	"rerunnable":  "A task of a service is started again whenever it ends. Remove rerunnable, or the service block.",
	"gang":        "The tasks of a service are kept running one by one. Remove gang, and leave count.",
	"led":         "The tasks of a service are kept running one by one. Remove led, or the service block.",
	"apart":       "It is for gangs. Write spread = \"Machine\" for tasks on different machines.",
	"max_running": "A service keeps all of its tasks running. Write count = N for N of them.",
}

// isService reports whether the job has a service block.
func (b *jobBuilder) isService() bool { return b.innerBlock("service") != nil }

// innerBlock returns the first block of a type within the job; nil for none.
func (b *jobBuilder) innerBlock(kind string) *hclsyntax.Block {
	for _, inner := range b.body.Blocks {
		if inner.Type == kind {
			return inner
		}
	}
	return nil
}

// inBlock returns a builder of the same job that looks up names in an inner block.
func (b *jobBuilder) inBlock(block *hclsyntax.Block) *jobBuilder {
	inner := *b
	inner.block, inner.body = block, block.Body
	return &inner
}

// onlyBlock returns the block of a type that may be there once. It reports a second one,
// labels, and settings and blocks in it that are not known.
func (b *jobBuilder) onlyBlock(kind, example string, settings, blocks []string) (block *hclsyntax.Block) {
	for _, inner := range b.body.Blocks {
		if inner.Type != kind {
			continue
		}
		if block != nil {
			b.reportProblem(inner.TypeRange, fmt.Sprintf("there are two %s blocks", kind), "Put all of it into one.")
			return nil
		}
		block = inner
	}
	if block == nil || !b.parser.refuseLabels(block, example) ||
		!b.parser.refuseUnknown(block, withArticle(kind)+" block", settings, blocks) {
		return nil
	}
	return block
}

// withArticle puts a or an before a word.
func withArticle(word string) string {
	if strings.ContainsAny(word[:1], "aeiou") {
		return "an " + word
	}
	return "a " + word
}

// readService reads the service block: the tasks of the job are to run always.
func (b *jobBuilder) readService() {
	block := b.onlyBlock("service", serviceExample, serviceSettings, []string{"backoff"})
	if block == nil {
		return
	}
	for _, name := range sortedKeys(refusedInService) {
		if a := b.body.Attributes[name]; a != nil {
			b.reportProblem(a.NameRange, name+" is not for a service", refusedInService[name])
		}
	}
	b.refuseOverriddenWalltime()
	checkServiceName(b)
	ad, inner := classad.New(), b.inBlock(block)
	inner.readServiceLease(b)
	inner.readLostAfter(ad)
	if n, ok := inner.constantInt("restarts", 0, roost.MaxServiceRestarts,
		"It says how often a task is started again on one machine within window, before it gets another."); ok {
		ad.SetInt(roost.AttrRestarts, n)
	}
	if d, _, ok := inner.resourceReader().constantDuration("window", time.Second); ok {
		ad.SetReal(roost.AttrWindow, d.Seconds())
	}
	inner.readBackoff(ad)
	inner.readStop(b, ad)
	b.ad.SetAd(roost.AttrService, ad)
}

// checkServiceName refuses a name that cannot be part of the names of the tasks.
func checkServiceName(b *jobBuilder) {
	name := b.block.Labels[0]
	if roost.IsDNSLabel(name) {
		return
	}
	hint := fmt.Sprintf("Its tasks are found by names in the DNS, as 0.%s.USER. Such a name has letters, digits and "+
		"inner hyphens, and at most %d characters.", cmp.Or(roost.NearestDNSLabel(name), "web"), roost.MaxDNSLabel)
	if nearest := roost.NearestDNSLabel(name); nearest != "" {
		hint += fmt.Sprintf(" The nearest one is %q.", nearest)
	}
	b.reportProblem(b.block.LabelRanges[0], fmt.Sprintf("%q cannot be the name of a service", truncateText(name)), hint)
}

// refuseOverriddenWalltime refuses a walltime that only some tasks would have.
func (b *jobBuilder) refuseOverriddenWalltime() {
	for _, inner := range b.body.Blocks {
		if a := inner.Body.Attributes["walltime"]; inner.Type == "override" && a != nil {
			b.reportProblem(a.NameRange, "walltime is not for a service", refusedInService["walltime"])
		}
	}
}

// readServiceLease reads the lease, which may be said in the job or in the block.
func (b *jobBuilder) readServiceLease(job *jobBuilder) {
	d, at, ok := b.resourceReader().constantDuration("lease", 10*time.Second)
	switch {
	case ok && job.body.Attributes["lease"] != nil:
		b.reportProblem(at, "the lease is said twice", "Remove it here, or outside of the service block.")
	case ok:
		b.ad.SetInt(roost.AttrJobLease, seconds(d))
	case job.body.Attributes["lease"] == nil:
		b.ad.Delete(roost.AttrJobLease) // the queue that takes the service knows it
	}
}

// readLostAfter reads when a replacement may start for a task whose machine is silent.
func (b *jobBuilder) readLostAfter(ad *classad.Ad) {
	overlap, _ := b.constantBool("overlap")
	if overlap {
		ad.SetBool(roost.AttrOverlap, true)
	}
	d, at, ok := b.resourceReader().constantDuration("lost_after", roost.MinLostAfter)
	if !ok {
		return
	}
	lease, known := b.ad.Int(roost.AttrJobLease)
	if least := time.Duration(lease) * time.Second; known && d < least && !overlap {
		b.reportProblem(at, "lost_after is shorter than the lease",
			fmt.Sprintf("It is %v, and the old task may run on for %v when its machine is silent: two of them "+
				"would run. Make lost_after longer, the lease shorter, or write overlap = true if two may run "+
				"at once.", d, least))
		return
	}
	ad.SetReal(roost.AttrLostAfter, d.Seconds())
}

// readBackoff reads how long a task that ended early waits before it is started again.
func (b *jobBuilder) readBackoff(ad *classad.Ad) {
	block := b.onlyBlock("backoff", "backoff { max = \"60s\" }", backoffSettings, nil)
	if block == nil {
		return
	}
	inner := b.inBlock(block)
	first := roost.DefaultBackoffFirst
	if d, at, ok := inner.backoffDuration("first"); ok {
		first = d
		if d > roost.DefaultBackoffMax && block.Body.Attributes["max"] == nil {
			b.reportProblem(at, "first is longer than max",
				fmt.Sprintf("It is %v, and max is %v by default. Write max too.", d, roost.DefaultBackoffMax))
			return
		}
		ad.SetReal(roost.AttrBackoffFirst, d.Seconds())
	}
	if d, at, ok := inner.backoffDuration("max"); ok {
		if d < first {
			b.reportProblem(at, "max is shorter than first",
				fmt.Sprintf("It is %v, and the first wait is %v already. Make max longer, or first shorter.", d, first))
			return
		}
		ad.SetReal(roost.AttrBackoffMax, d.Seconds())
	}
}

// backoffDuration reads a wait within the bounds of the queue.
func (b *jobBuilder) backoffDuration(name string) (d time.Duration, at hcl.Range, ok bool) {
	d, at, ok = b.resourceReader().constantDuration(name, roost.MinBackoff)
	if ok && d > roost.MaxBackoff {
		b.reportProblem(at, name+" is too long",
			fmt.Sprintf("It is %v, and can be at most %v: a task that fails would seem to be forgotten.", d,
				roost.MaxBackoff))
		return 0, at, false
	}
	return d, at, ok
}
