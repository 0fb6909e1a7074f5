package submit

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// logSettings are the settings of a logs block.
var logSettings = []string{"size", "files", "keep"}

const logExample = "logs { size = \"10MiB\" }"

// readLogs reads the logs block. It says how much output of a service is kept.
func (b *jobBuilder) readLogs() {
	block := b.onlyBlock("logs", logExample, logSettings, nil)
	if block == nil {
		return
	}
	if !b.isService() {
		b.reportProblem(block.TypeRange, "logs is for services",
			"All output of a task that ends is kept, until the machine's limit. Add a service block if the tasks are "+
				"to run always, or remove logs.")
		return
	}
	for _, name := range []string{"stdout", "stderr"} {
		if a := b.body.Attributes[name]; a != nil {
			b.reportProblem(a.NameRange, name+" and logs contradict each other",
				"Output that goes to a file of yours is not removed. Remove "+name+", or the logs block.")
		}
	}
	ad, inner := classad.New(), b.inBlock(block)
	if n, ok := inner.logSize(); ok {
		ad.SetInt(roost.AttrLogSize, int64(n))
	}
	if n, ok := inner.constantInt("files", roost.MinLogFiles, roost.MaxLogFiles,
		"The most that stays of a stream is files times size."); ok {
		ad.SetInt(roost.AttrLogFiles, n)
	}
	if d, at, ok := inner.resourceReader().constantDuration("keep", 0); ok {
		if d > roost.MaxLogRetention {
			b.reportProblem(at, "keep is too long", fmt.Sprintf("It is %v, and can be at most %d days.", d,
				roost.MaxLogRetention/(24*time.Hour)))
			return
		}
		ad.SetReal(roost.AttrLogRetain, d.Seconds())
	}
	b.ad.SetAd(roost.AttrLogs, ad)
}

// logSize reads the size of what is removed at once.
func (b *jobBuilder) logSize() (roost.Bytes, bool) {
	v, at, ok := b.constantValue("size")
	if !ok {
		return 0, false
	}
	return b.checkLogSize(v, at)
}

func (b *jobBuilder) checkLogSize(v cty.Value, at hcl.Range) (roost.Bytes, bool) {
	const hint = "Write a number with a unit: " + logExample + "."
	if v.Type() != cty.String {
		b.reportProblem(at, "size has to be a text with a unit", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return 0, false
	}
	n, err := roost.ParseBytes(v.AsString())
	switch {
	case err != nil:
		b.reportProblem(at, "size is no number of bytes", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
	case n < roost.MinLogSize, n > roost.MaxLogSize:
		b.reportProblem(at, "size is out of bounds",
			fmt.Sprintf("It is %v, and can be %v to %v.", n, roost.MinLogSize, roost.MaxLogSize))
	default:
		return n, true
	}
	return 0, false
}
