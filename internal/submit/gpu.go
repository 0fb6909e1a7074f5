package submit

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// resolveGPUs makes the number of GPUs and the memory of each consistent. A job with
// gpu_memory and no number gets one GPU, and one with gpus = 0 cannot have gpu_memory. If
// only some tasks have GPUs, gpu_memory is for those.
func (b resourceReader) resolveGPUs() {
	size := b.body.Attributes["gpu_memory"]
	if size == nil {
		return
	}
	if b.body.Attributes["gpus"] == nil {
		b.ad.SetInt(roost.AttrRequestGpus, 1)
		return
	}
	if n, _ := b.ad.Int(roost.AttrRequestGpus); n == 0 && !b.hasColumn(roost.AttrRequestGpus) &&
		!b.hasOverride("gpus") {
		b.refuseGPUSettings(size)
		b.ad.Delete(roost.AttrRequestGpuMem)
	}
}

func (b resourceReader) refuseGPUSettings(size *hclsyntax.Attribute) {
	b.reportProblem(size.Expr.Range(), "gpu_memory without a GPU",
		"It is memory of each GPU, and gpus = 0 asks for none. Write gpus = 1, or leave gpu_memory out; the memory "+
			"of the machine is set with memory.")
}

func (b resourceReader) hasColumn(name string) bool {
	return slices.ContainsFunc(b.columns, func(c TaskColumn) bool { return c.Name == name })
}

// hasOverride reports whether some override block sets a quantity.
func (b resourceReader) hasOverride(name string) bool {
	return slices.ContainsFunc(b.body.Blocks, func(block *hclsyntax.Block) bool {
		return block.Type == "override" && block.Body.Attributes[name] != nil
	})
}

// resolveOverrideGPUs is resolveGPUs for the tasks of an override block.
func (b resourceReader) resolveOverrideGPUs(block *hclsyntax.Block, columns map[string][]string, chosen []int) {
	size, number := block.Body.Attributes["gpu_memory"], block.Body.Attributes["gpus"]
	if size == nil || columns[roost.AttrRequestGpuMem] == nil {
		return
	}
	if columns[roost.AttrRequestGpus] == nil {
		columns[roost.AttrRequestGpus] = b.taskReader().baseColumn(roost.AttrRequestGpus)
	}
	gpus := columns[roost.AttrRequestGpus]
	for _, i := range chosen {
		if gpus[i] != "0" {
			continue
		}
		if number != nil {
			b.refuseGPUSettings(size)
			return
		}
		gpus[i] = "1"
	}
}

// appClasses are the application classes; the first one is the default.
var appClasses = []string{roost.AppBatch, roost.AppStream}

// readAppClass reads which queue of a resource unit the tasks go to.
func (b resourceReader) readAppClass() {
	const hint = "A batch job may wait on a machine for its turn; a stream job, such as a server, starts at once " +
		"and goes before batch jobs on its processors."
	s, at, ok := b.constantText("app_class", hint)
	switch {
	case !ok:
	case !slices.Contains(appClasses, s):
		b.reportProblem(at, fmt.Sprintf("there is no app_class %q", truncateText(s)),
			"It is \"batch\" or \"stream\". "+hint+nearestHint(s, appClasses))
	case s == roost.AppStream:
		b.ad.SetString(roost.AttrAppClass, s)
	}
	if !ok && b.isService() {
		b.ad.SetString(roost.AttrAppClass, roost.AppStream)
	}
}
