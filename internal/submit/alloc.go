package submit

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// allocSettings are the settings of an alloc block.
var allocSettings = []string{
	"count", "cpus", "memory", "disk", "gpus", "gpu_memory", "disk_io", "network", "app_class", "band", "priority",
	"group", "requirements", "rank", "prefer", "spread", "packages", "limits", "queue", "lease", "labels",
	"start_after", "hold", "unix_group", "cell_queue", "users",
}

const allocExample = "alloc \"web\" {\n    count  = 3\n    cpus   = 2\n    memory = \"4GiB\"\n  }"

const inHint = "Write in = alloc.NAME for an alloc block of this file, or in = \"123\" for an alloc set that was " +
	"submitted before."

// refusedInside are settings of a job that contradict in, and why.
var refusedInside = func() map[string]string {
	const ofSet = "The tasks run on the machine of their alloc. Write it into the alloc block."
	return map[string]string{
		"requirements": ofSet, "rank": ofSet, "prefer": ofSet, "spread": ofSet, "packages": ofSet, "limits": ofSet,
		"reservation": ofSet, "apart": ofSet,
		"band":      "The tasks have the band of their alloc, which pays for them. Write it into the alloc block.",
		"gang":      "There are no gangs inside allocs. Remove gang, or in.",
		"led":       "There are no gangs inside allocs. Remove led, or in.",
		"exclusive": "The tasks share their alloc. Remove exclusive, or in.",
		"together":  "There are no gangs inside allocs. Remove together, or in.",
	}
}()

// insideReference is the alloc set that a job names.
type insideReference struct {
	alloc *jobBuilder // of this file; nil: of none
	at    hcl.Range
}

// allocReader reads an alloc block, or inside which alloc set a job is.
type allocReader struct{ *jobBuilder }

// buildAlloc reads an alloc block into the ad of a job that runs nothing.
func (b allocReader) buildAlloc() {
	b.parser.refuseUnknown(b.block, "an alloc", allocSettings, nil)
	if b.body.Attributes["count"] == nil {
		b.reportProblem(b.block.TypeRange, "an alloc without count",
			"Say how many machines are to keep room: count = 1 for one, count = 3 for three.")
		b.tasks = taskSet{count: 1, isInvalid: true}
	} else {
		b.taskReader().readTasks()
	}
	b.ad.SetString(roost.AttrMyType, "Job")
	b.ad.SetString(roost.AttrJobName, EscapeLiteral(b.name))
	b.ad.SetInt(roost.AttrTaskCount, int64(b.tasks.count))
	b.ad.SetBool(roost.AttrAlloc, true)
	b.resourceReader().readResources()
	b.resourceReader().readAppClass()
	b.resourceReader().readPlacement()
	b.resourceReader().readLimits()
	if b.body.Attributes["lease"] == nil {
		b.ad.Delete(roost.AttrJobLease) // the queue that takes the alloc set knows it
	}
	if b.body.Attributes["app_class"] == nil {
		b.ad.SetString(roost.AttrAppClass, roost.AppStream)
	}
	b.readAllocUsers()
	for _, c := range b.columns { // parts of a set would be of different sizes
		b.reportProblem(b.block.TypeRange, fmt.Sprintf("the allocs of a set differ in %s", c.Name),
			"All of them have the same resources. Write an alloc block for each size.")
	}
}

// readAllocUsers reads whose jobs may be inside besides the owner's.
func (b allocReader) readAllocUsers() {
	list, ok := b.taskReader().textListSetting("users")
	if !ok {
		return
	}
	const hint = "It is a list of users of the same submit node, or of others with its name: users = [\"bob\", " +
		"\"ann@n2\"]."
	names := make([]string, 0, len(list))
	for _, text := range list {
		name, isFixed := text.fixedText()
		if err := roost.CheckAllocUser(name); err != nil || !isFixed {
			b.reportProblem(text.sourceRange, fmt.Sprintf("%q cannot be the name of a user", truncateText(name)), hint)
			return
		}
		names = append(names, name)
	}
	if len(names) > roost.MaxAllocUsers {
		b.reportProblem(b.body.Attributes["users"].NameRange, "there are too many users",
			fmt.Sprintf("An alloc set has at most %d.", roost.MaxAllocUsers))
	}
	b.ad.SetStrings(roost.AttrAllocUsers, names)
}

// readInside reads in and place: the job's tasks run inside an alloc set.
func (b allocReader) readInside() {
	place, isPlaced := b.readAllocPlace()
	a, ok := b.attribute("in", "alloc")
	if !ok {
		if isPlaced && b.body.Attributes["in"] == nil {
			b.reportProblem(b.body.Attributes["place"].NameRange, "place is for jobs inside an alloc set", inHint)
		}
		return
	}
	for _, name := range sortedKeys(refusedInside) {
		if other := b.body.Attributes[name]; other != nil {
			b.reportProblem(other.NameRange, name+" is not for a job inside an alloc set", refusedInside[name])
		}
	}
	b.refuseOverriddenPlace()
	if block := b.innerBlock("schedule"); block != nil {
		b.reportProblem(block.TypeRange, "schedule is not for a job inside an alloc set",
			"A run that is made later cannot be inside one. Remove schedule, or in.")
	}
	b.ad.SetString(roost.AttrAllocPlace, place)
	b.inside.at = a.Expr.Range()
	scope := b.parser.root.NewChild()
	sets := map[string]cty.Value{}
	for name := range b.parser.allocs {
		sets[name] = cty.ObjectVal(map[string]cty.Value{"alloc": cty.StringVal(name)})
	}
	scope.Variables = map[string]cty.Value{"alloc": cty.ObjectVal(sets)}
	v, ok := b.parser.evaluate(a.Expr, scope)
	if !ok || v.IsNull() {
		return
	}
	b.setInside(v, place)
}

// refuseOverriddenPlace refuses overrides of what the alloc decides.
func (b allocReader) refuseOverriddenPlace() {
	for _, inner := range b.body.Blocks {
		for _, name := range []string{"requirements", "rank"} {
			if a := inner.Body.Attributes[name]; inner.Type == "override" && a != nil {
				b.reportProblem(a.NameRange, name+" is not for a job inside an alloc set", refusedInside[name])
			}
		}
	}
}

// setInside puts into the ad which alloc set a value names.
func (b allocReader) setInside(v cty.Value, place string) {
	switch ty := v.Type(); {
	case ty.IsObjectType() && ty.HasAttribute("alloc") && len(ty.AttributeTypes()) == 1:
		b.inside.alloc = b.parser.allocs[v.GetAttr("alloc").AsString()]
		if !b.inside.alloc.tasks.isInvalid && !b.tasks.isInvalid {
			b.checkAllocFits(b.inside.alloc, place)
		}
	case ty == cty.String || ty == cty.Number:
		text, _ := b.taskReader().valueText(v, b.inside.at, "in")
		id, err := roost.ParseJobID(text, "here")
		if err != nil || id.Seq == 0 {
			hint := inHint
			if b.parser.allocs[text] != nil {
				hint = fmt.Sprintf("The alloc block of this file is named without quotes: in = alloc.%s.", text)
			}
			b.reportProblem(b.inside.at, fmt.Sprintf("%q is not the id of an alloc set", truncateText(text)), hint)
			return
		}
		b.ad.SetString(roost.AttrInAlloc, text)
	default:
		b.reportProblem(b.inside.at, "this is not an alloc set", fmt.Sprintf("It is %s. %s", describeValue(v), inHint))
	}
}

// readAllocPlace reads which task goes into which alloc.
func (b allocReader) readAllocPlace() (place string, isSet bool) {
	places := []string{roost.PlaceByIndex, roost.PlaceAnywhere}
	const hint = "It is \"index\" (task 3 inside alloc 3, beside the third tasks of other jobs there) or \"any\" " +
		"(inside any alloc that has room)."
	s, at, ok := b.constantText("place", hint)
	switch {
	case !ok:
		return roost.PlaceByIndex, b.body.Attributes["place"] != nil
	case !slices.Contains(places, s):
		b.reportProblem(at, fmt.Sprintf("there is no place %q", truncateText(s)), hint+nearestHint(s, places))
		return roost.PlaceByIndex, true
	}
	return s, true
}

// checkAllocFits refuses a job whose tasks an alloc of the file is too small for, or too
// few.
func (b allocReader) checkAllocFits(alloc *jobBuilder, place string) {
	if place == roost.PlaceByIndex && b.tasks.count > alloc.tasks.count {
		b.reportProblem(b.inside.at, fmt.Sprintf("alloc %q has too few allocs for this job", alloc.name),
			fmt.Sprintf("The job has %d tasks, and each goes into the alloc of its own index, of which there are %d. "+
				"Write count = %d in the alloc block, or place = \"any\" here.", b.tasks.count, alloc.tasks.count,
				b.tasks.count))
		return
	}
	for _, q := range quantities() {
		if !slices.Contains([]string{"cpus", "memory", "disk", "gpus", "gpu_memory", "disk_io", "network"},
			q.name) {
			continue
		}
		has, wants := quantityOf(alloc.ad, q.attribute), b.largestQuantity(q.attribute)
		if q.name == "gpu_memory" && has == 0 || wants <= has {
			continue
		}
		at := b.inside.at
		if a := b.body.Attributes[q.name]; a != nil {
			at = a.Expr.Range()
		}
		b.reportProblem(at, fmt.Sprintf("alloc %q is too small for this job", alloc.name),
			fmt.Sprintf("A task asks for %s = %s, and the alloc, on line %d, has %s. Ask for less here, or for more "+
				"there.", q.name, quantityText(q.name, wants), alloc.block.DefRange().Start.Line,
				quantityText(q.name, has)))
	}
}

// quantityOf reads a quantity from an ad, in the unit that it has there.
func quantityOf(ad *classad.Ad, attr string) float64 {
	n, _ := ad.Real(attr)
	return n
}

// quantityText writes a quantity as users do.
func quantityText(name string, n float64) string {
	switch name {
	case "memory", "gpu_memory":
		return strconv.Quote(roost.Bytes(n * float64(roost.MiB)).String())
	case "disk":
		return strconv.Quote(roost.Bytes(n * float64(roost.KiB)).String())
	case "disk_io", "network":
		return strconv.Quote(roost.ByteRate(n * float64(roost.KiB)).String())
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// largestQuantity is the most of something that a task of the job asks for, in the unit
// of the ad.
func (b allocReader) largestQuantity(attr string) float64 {
	most := quantityOf(b.ad, attr)
	unit := map[string]roost.Bytes{roost.AttrRequestMemory: roost.MiB, roost.AttrRequestGpuMem: roost.MiB,
		roost.AttrRequestDisk: roost.KiB, roost.AttrRequestDiskIO: roost.KiB, roost.AttrRequestNet: roost.KiB}[attr]
	for _, c := range b.columns {
		if c.Name != attr {
			continue
		}
		for _, text := range c.Values {
			n, err := strconv.ParseFloat(text, 64)
			if err == nil && unit > 0 {
				n /= float64(unit)
			}
			most = max(most, n)
		}
	}
	return most
}

// setInsideID names the alloc set of this file in the ad, once the order is fixed.
func (b allocReader) setInsideID() {
	if b.inside.alloc != nil {
		b.ad.SetString(roost.AttrInAlloc, fmt.Sprintf("@%d", b.inside.alloc.position))
	}
}

// readAllocs makes the alloc blocks of the file, which come before all jobs.
func (p *fileParser) readAllocs() (builders []*jobBuilder) {
	p.allocs = map[string]*jobBuilder{}
	for _, block := range p.allocBlocks {
		name, ok := p.blockLabel(block, "an alloc", allocExample)
		if !ok {
			continue
		}
		if first := p.allocs[name]; first != nil {
			p.report(newDiagnostic(block.LabelRanges[0].Ptr(), fmt.Sprintf("there are two allocs called %q", name),
				fmt.Sprintf("The other one is on line %d. Give one of them another name, or raise its count.",
					first.block.DefRange().Start.Line)))
			continue
		}
		b := newBuilder(p, block, name)
		p.allocs[name] = b
		builders = append(builders, b)
	}
	for _, b := range builders {
		allocReader{b}.buildAlloc()
	}
	return builders
}

// explainAlloc is for a name below alloc that is not defined where it stands.
func explainAlloc(at *hcl.Range) *hcl.Diagnostic {
	return newDiagnostic(at, "alloc is not known here",
		"An alloc set of the file can only be named in in: in = alloc.NAME.")
}
