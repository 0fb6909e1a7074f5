package submit

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// maxGang is the largest number of tasks that can start together, as in the schedd.
const maxGang = 2048

// readGang reads which tasks start together, and in which reservation.
func (b resourceReader) readGang() {
	const hint = "Write true for all tasks of the job, or how many of them start together."
	if v, at, ok := b.constantValue("gang"); ok {
		size := int64(b.tasks.perJob())
		if v.Type() != cty.Bool {
			size, ok = b.checkInteger(v, at, "gang", 1, maxGang, hint)
		} else if !v.True() {
			size = 1
		}
		switch {
		case !ok:
		case size > maxGang:
			b.reportProblem(at, "the gang is too large",
				fmt.Sprintf("The job has %d tasks, and at most %d can start together.", size, maxGang))
		case int64(b.tasks.perJob())%size != 0:
			b.reportProblem(at, "the tasks are no whole number of gangs",
				fmt.Sprintf("The job has %d tasks, and %d of them are to start together. Change count, or gang.",
					b.tasks.perJob(), size))
		case b.body.Attributes["max_running"] != nil && size > 1:
			b.reportProblem(at, "gang and max_running do not go together", "Remove one of them.")
		case size > 1:
			b.ad.SetInt(roost.AttrGangSize, size)
		}
	}
	b.readMPIGang()
	b.readRanks()
	if name, at, ok := b.constantText("reservation", "Write the name of a reservation."); ok {
		if name == "" {
			b.reportProblem(at, "reservation is empty", "Write the name of a reservation, or remove it.")
		}
		b.ad.SetString(roost.AttrReservation, name)
	}
}

// readMPIGang reads whether a gang is an MPI gang, and how its tasks may be placed.
func (b resourceReader) readMPIGang() {
	size, _ := b.ad.Int(roost.AttrGangSize)
	if led, ok := b.constantBool("led"); ok && led {
		if _, at, _ := b.constantValue("led"); size < 2 || size != int64(b.tasks.perJob()) {
			b.reportProblem(at, "led is for a gang of all tasks", "Write gang = true, and a count of 2 at least.")
			return
		}
		b.ad.SetBool(roost.AttrMPIGang, true)
		b.ad.SetBool("Array", false) // it is one program
		b.tasks.array = false
	}
	if apart, ok := b.constantBool("apart"); ok && apart {
		if _, at, _ := b.constantValue("apart"); size < 2 {
			b.reportProblem(at, "apart is for gangs",
				"Write gang = true for tasks that start together, or spread = \"Machine\" for others.")
			return
		}
		b.ad.SetBool(roost.AttrScatter, true)
	}
	b.readPlacementShape(size)
}

// readRanks reads whether the tasks of a gang are started as the ranks of an MPI program.
func (b resourceReader) readRanks() {
	const hint = `Write mpi = "pmi1" or "pmi2" for programs of MPICH, Intel MPI, MVAPICH and Flux. For Open MPI ` +
		`write led = true, and start the program by mpirun.`
	kind, at, ok := b.constantText("mpi", hint)
	switch {
	case !ok:
	case kind != "pmi1" && kind != "pmi2":
		b.reportProblem(at, fmt.Sprintf("%q is not a protocol of ranks", truncateText(kind)), hint)
	case b.body.Attributes["led"] != nil:
		b.reportProblem(at, "mpi and led do not go together",
			"With led the first task starts the others; with mpi Roost does. Remove one of them.")
	case b.body.Attributes["image"] != nil:
		b.reportProblem(at, "mpi and image do not go together yet",
			"Ranks are started with the files of the machine. Remove one of them.")
	case hasBlock(b.body, "checkpoint"):
		b.reportProblem(at, "no checkpoints are made of ranks", "Remove mpi, or the checkpoint block.")
	default:
		b.ad.SetString(roost.AttrMPI, jobad.MPIByPMI1) // the program says which of the two it speaks
	}
	d, at, ok := b.constantDuration("start_timeout", time.Second)
	switch {
	case !ok:
	case b.body.Attributes["mpi"] == nil:
		b.reportProblem(at, "start_timeout is for MPI programs", `Write mpi = "pmi1", or remove it.`)
	default:
		b.ad.SetInt(roost.AttrStartTimeout, seconds(d))
	}
}

// hasBlock reports whether a job has a block of a type.
func hasBlock(body *hclsyntax.Body, name string) bool {
	return slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == name })
}

// readPlacementShape reads whether tasks have exclusive machines, and what the machines
// of a gang have in common.
func (b resourceReader) readPlacementShape(size int64) {
	if alone, ok := b.constantBool("exclusive"); ok && alone {
		if class, _ := b.ad.Str(roost.AttrAppClass); class == roost.AppStream {
			_, at, _ := b.constantValue("exclusive")
			b.reportProblem(at, "exclusive is not for stream tasks",
				"They share their machines with batch, which gives way to them.")
			return
		}
		b.ad.SetBool(roost.AttrExclusive, true)
	}
	const hint = "Write the attribute of machines that is to be the same of all that the gang runs on, as " +
		"in together = \"Rack\"."
	if s, at, ok := b.constantText("together", hint); ok {
		switch {
		case !attributeName.matches(s):
			b.reportProblem(at, fmt.Sprintf("%q is not the name of an attribute", truncateText(s)), hint)
		case size < 2:
			b.reportProblem(at, "together is for gangs", "Write gang = true for tasks that start together.")
		default:
			b.ad.SetString(roost.AttrPlacementSet, s)
		}
	}
}
