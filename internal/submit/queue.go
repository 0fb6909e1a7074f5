package submit

import "github.com/roost-batch/roost"

// readQueue reads which queue the job goes to.
func (b *jobBuilder) readQueue() {
	const hint = "Write the name of a queue, as roost queue lists them."
	if name, at, ok := b.constantText("queue", hint); ok {
		if name == "" {
			b.reportProblem(at, "queue is empty", "Write the name of a queue, or remove it.")
		}
		b.ad.SetString(roost.AttrQueue, name)
	}
}
