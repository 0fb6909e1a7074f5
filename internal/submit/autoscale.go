package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// autoscaleSettings are the settings of an autoscale block, and scaleSources those of
// them that say by what the service is scaled.
var (
	autoscaleSettings = []string{"min", "max", "metric", "port", "path", "target", "cpu", "memory", "waiting_queue",
		"waiting_job", "tolerance", "up_window", "down_window", "up_by", "down_by", "period", "every"}
	scaleSources = []string{"metric", "cpu", "memory", "waiting_queue", "waiting_job"}
)

const (
	autoscaleExample = "autoscale {\n  max = 10\n  cpu = \"70%\"\n}"
	autoscaleHint    = "Write metric = \"NAME\" with port and target, cpu = \"70%\", memory = \"80%\", or " +
		"waiting_queue = \"NAME\" or waiting_job = \"NAME\" with target."
)

// autoscaleReader reads one autoscale block.
type autoscaleReader struct {
	*jobBuilder // of the block
	job         *jobBuilder
	ad          *classad.Ad
	policy      autoscale.Policy
	places      map[string]hcl.Range // of the settings
	header      hcl.Range
}

// readAutoscale reads the autoscale block. It says between what bounds, and by what, the
// number of tasks of a service follows its load.
func (b *jobBuilder) readAutoscale() {
	r := newAutoscaleReader(b, "autoscale", autoscaleExample, autoscaleSettings,
		"the number of tasks cannot change",
		"Each task has values or an index of its own, and further tasks would have none.")
	if r == nil {
		return
	}
	problems := len(b.parser.diags)
	r.readScaleBounds()
	r.readSource()
	r.readBehaviour()
	if len(b.parser.diags) == problems {
		r.checkTogether()
	}
	b.ad.SetAd(roost.AttrAutoscale, r.ad)
}

// newAutoscaleReader returns a reader of a block by which services follow their load. It
// returns nil if there is none, or if the job cannot have it. Tasks with values of their
// own are refused with a reason.
func newAutoscaleReader(b *jobBuilder, kind, example string, settings []string, refusal,
	reason string) *autoscaleReader {
	block := b.onlyBlock(kind, example, settings, nil)
	if block == nil {
		return nil
	}
	if !b.isService() {
		b.reportProblem(block.TypeRange, kind+" is for services",
			"The tasks of this job run once and end. Add a service block if they are to run always, or remove "+
				kind+".")
		return nil
	}
	if b.tasks.keys != nil || b.tasks.indexes != nil {
		b.reportProblem(block.TypeRange, refusal, reason+" Remove "+kind+", for_each or indexes.")
		return nil
	}
	r := &autoscaleReader{jobBuilder: b.inBlock(block), job: b, ad: classad.New(), policy: autoscale.DefaultPolicy(),
		places: map[string]hcl.Range{}, header: block.TypeRange}
	for name, a := range block.Body.Attributes {
		r.places[name] = a.Expr.Range()
	}
	return r
}

// readScaleBounds reads how many tasks there are at least and at most.
func (r *autoscaleReader) readScaleBounds() {
	const hint = "It is how many tasks the service has at least. Without it that is 1."
	if n, ok := r.constantInt("min", 1, roost.MaxTasks, hint); ok {
		r.policy.Min = int(n)
		r.ad.SetInt(roost.AttrScaleMin, n)
	}
	if r.body.Attributes["max"] == nil {
		r.reportProblem(r.header, "max is missing", "It is how many tasks the service has at most: max = 10.")
		return
	}
	if n, ok := r.constantInt("max", 1, roost.MaxTasks, "It is how many tasks the service has at most."); ok {
		r.policy.Max = int(n)
		r.ad.SetInt(roost.AttrScaleMax, n)
	}
}

// readSource reads by what the service is scaled. It is one thing.
func (r *autoscaleReader) readSource() {
	var found []string
	for _, name := range scaleSources {
		if r.body.Attributes[name] != nil {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		r.reportProblem(r.header, "it says nothing of by what the service is scaled", autoscaleHint)
		return
	case 1:
	default:
		r.reportProblem(r.body.Attributes[found[1]].NameRange, fmt.Sprintf("it has %s and %s", found[0], found[1]),
			"A service is scaled by one thing. Remove one of the two.")
		return
	}
	switch name := found[0]; name {
	case "cpu":
		r.readPart(name, roost.AttrScaleCPU, autoscale.CPUUse)
	case "memory":
		r.readPart(name, roost.AttrScaleMemory, autoscale.MemoryUse)
	case "metric":
		r.readMetric()
	default:
		r.policy.Source = autoscale.WaitingTasks
		attribute := roost.AttrWaitingQueue
		if name == "waiting_job" {
			attribute = roost.AttrWaitingJob
		}
		if s, at, ok := r.constantText(name, "Write the name of a queue, or of jobs of yours."); ok && s == "" {
			r.reportProblem(at, name+" is empty", "Write the name of a queue, or of jobs of yours.")
		} else if ok {
			r.ad.SetString(attribute, s)
		}
		r.readTarget()
	}
	if r.policy.Source != autoscale.TaskMetric {
		for _, name := range []string{"port", "path"} {
			if a := r.body.Attributes[name]; a != nil {
				r.reportProblem(a.NameRange, name+" without metric", "It says where a metric is read. Remove it, or "+
					"write metric = \"NAME\".")
			}
		}
	}
}

// readPart reads what part of what a task asks for it is to use.
func (r *autoscaleReader) readPart(name, attribute string, s autoscale.Source) {
	r.policy.Source = s
	if a := r.body.Attributes["target"]; a != nil {
		r.reportProblem(a.NameRange, "target beside "+name, "The target is said with "+name+" itself. Remove target.")
	}
	if part, ok := r.percentage(name, autoscale.MaxUse); ok {
		r.policy.Target = part
		r.ad.SetReal(attribute, part)
	}
}

// percentage reads a text such as "70%", as a part of 1.
func (r *autoscaleReader) percentage(name string, most float64) (part float64, ok bool) {
	hint := fmt.Sprintf("Write a percentage: %s = \"70%%\".", name)
	s, at, ok := r.constantText(name, hint)
	if !ok {
		return 0, false
	}
	number, has := strings.CutSuffix(strings.TrimSpace(s), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !has || err != nil || !(n >= 0 && n <= 100*most) {
		r.reportProblem(at, fmt.Sprintf("%s cannot be %q", name, truncateText(s)), hint)
		return 0, false
	}
	return n / 100, true
}

// readMetric reads which metric of the tasks is meant.
func (r *autoscaleReader) readMetric() {
	r.policy.Source = autoscale.TaskMetric
	if s, at, ok := r.constantText("metric", "Write the name of a metric that each task exports."); ok {
		if roost.CheckMetricName(s) != nil {
			r.reportProblem(at, fmt.Sprintf("%q is no name of a metric", truncateText(s)),
				"A name has letters, digits, _ and :, as in metric = \"requests_in_flight\". Its series are added up.")
		}
		r.ad.SetString(roost.AttrScaleMetric, s)
	}
	var names []string
	for _, p := range r.ports {
		names = append(names, p.Name)
	}
	switch s, at, ok := r.constantText("port", "Write the name of a port of the job."); {
	case !ok && r.body.Attributes["port"] == nil:
		r.reportProblem(r.body.Attributes["metric"].NameRange, "metric without port",
			"Say on which port of the task it is read: port = \"http\".")
	case ok && !slices.Contains(names, s):
		r.reportProblem(at, fmt.Sprintf("the job has no port %q", truncateText(s)),
			"Write the name of one of its port blocks, or add "+portExample+"."+nearestHint(s, names))
	case ok:
		r.ad.SetString(roost.AttrScalePort, s)
	}
	if s, at, ok := r.constantText("path", "Write a path: path = \"/metrics\"."); ok {
		isSpace := func(c rune) bool { return c <= ' ' }
		if !strings.HasPrefix(s, "/") || len(s) > 1024 || strings.ContainsFunc(s, isSpace) {
			r.reportProblem(at, fmt.Sprintf("%q is no path", truncateText(s)),
				"A path begins with / and has no spaces: path = \"/metrics\".")
		}
		r.ad.SetString(roost.AttrScalePath, s)
	}
	r.readTarget()
}

// readTarget reads what each task is to have of the source.
func (r *autoscaleReader) readTarget() {
	const hint = "It is how much of it is for each task: target = 10."
	if r.body.Attributes["target"] == nil {
		r.reportProblem(r.header, "target is missing", hint)
		return
	}
	v, at, ok := r.constantValue("target")
	if !ok {
		return
	}
	n := 0.0
	if v.Type() == cty.Number {
		n, _ = v.AsBigFloat().Float64()
	}
	if !(n >= autoscale.MinTarget && n <= autoscale.MaxTarget) {
		r.reportProblem(at, "target has to be a number above 0", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return
	}
	r.policy.Target = n
	r.ad.SetReal(roost.AttrScaleTarget, n)
}

// readBehaviour reads how fast the number of tasks follows.
func (r *autoscaleReader) readBehaviour() {
	if r.body.Attributes["tolerance"] != nil {
		if part, ok := r.percentage("tolerance", 1); ok {
			r.policy.Tolerance = part
			r.ad.SetReal(roost.AttrTolerance, part)
		}
	}
	for _, t := range []struct {
		name, attribute string
		to              *time.Duration
	}{
		{"up_window", roost.AttrUpWindow, &r.policy.UpWindow},
		{"down_window", roost.AttrDownWindow, &r.policy.DownWindow},
		{"period", roost.AttrScalePeriod, &r.policy.Period}, {"every", roost.AttrScaleEvery, &r.policy.Every},
	} {
		if d, _, ok := r.resourceReader().constantDuration(t.name, 0); ok {
			*t.to = d
			r.ad.SetReal(t.attribute, d.Seconds())
		}
	}
	amounts := &updateReader{jobBuilder: r.jobBuilder}
	for _, a := range []struct {
		name, attribute string
		to              *update.Amount
	}{{"up_by", roost.AttrUpBy, &r.policy.UpBy}, {"down_by", roost.AttrDownBy, &r.policy.DownBy}} {
		if n, ok := amounts.amount(a.name); ok {
			*a.to = n
			r.policy.UpBySet = r.policy.UpBySet || a.name == "up_by"
			r.ad.SetString(a.attribute, n.String())
		}
	}
}

// checkTogether reports settings that contradict each other, or the rest of the job.
func (r *autoscaleReader) checkTogether() {
	if problems := r.policy.Problems(); len(problems) > 0 {
		p := problems[0]
		at, ok := r.places[p.Field]
		if !ok {
			at = r.header
		}
		r.reportProblem(at, p.Field+" does not fit", capitalised(p.Cause)+" "+capitalised(p.Cure))
		return
	}
	job := r.job
	job.leastTasks, job.tasks.array = r.policy.Min, true
	count := job.body.Attributes["count"]
	switch n := job.tasks.count; {
	case count == nil:
		job.tasks.count = r.policy.Min
		job.ad.SetInt(roost.AttrTaskCount, int64(r.policy.Min))
	case n != r.policy.Clamp(n):
		r.reportProblem(count.Expr.Range(), "count is outside of min and max", fmt.Sprintf("It is %d, with which the "+
			"service begins, and autoscale allows %d to %d. Remove count, or write one of these.", n, r.policy.Min,
			r.policy.Max))
	}
}
