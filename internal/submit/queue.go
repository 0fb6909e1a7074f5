package submit

import "github.com/roost-batch/roost"

// readQueue reads which queue the job goes to.
func (b *builder) readQueue() {
	const cure = "Write the name of a queue, as roost queue lists them."
	if name, at, ok := b.sameText("queue", cure); ok {
		if name == "" {
			b.fail(at, "queue is empty", "Write the name of a queue, or remove it.")
		}
		b.ad.SetString(roost.AttrQueue, name)
	}
}
