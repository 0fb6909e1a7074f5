package classad

import (
	"fmt"
	"strings"
	"testing"
)

// machineText returns an ad of 100 attributes, of the kinds that a machine's ad has.
func machineText() string {
	var b strings.Builder
	b.WriteString(
		`[ MyType = "Machine"; Name = "slot1@node17"; Cpus = 16; Memory = 64000; Disk = 200000000; Gpus = 2; Arch = "X86_64"; ` +
			`OpSys = "LINUX"; State = "Unclaimed"; LoadAvg = 0.25; HasDocker = true; FileSystemDomain = "example.org"; Start = true; ` +
			`Rank = 0; Requirements = START && (TARGET.RequestMemory <= Memory); GpuNames = { "H200", "H200" }`,
	)
	for i := 16; i < 100; i++ {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `; Attribute%d = %d`, i, i*1000)
		case 1:
			fmt.Fprintf(&b, `; Attribute%d = "some text of a usual length %d"`, i, i)
		case 2:
			fmt.Fprintf(&b, `; Attribute%d = %d.5`, i, i)
		default:
			fmt.Fprintf(&b, `; Attribute%d = Memory > %d && State == "Unclaimed"`, i, i)
		}
	}
	b.WriteString(" ]")
	return b.String()
}

const jobText = `[ MyType = "Job"; Owner = "anna"; RequestCpus = 4; RequestMemory = 8000; RequestDisk = 100000; RequestGpus = 1; ` +
	`Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX" && TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus ` +
	`&& TARGET.Gpus >= RequestGpus; Rank = TARGET.Memory ]`

func BenchmarkParse(b *testing.B) {
	text := machineText()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrint(b *testing.B) {
	ad, err := Parse(machineText())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if ad.String() == "" {
			b.Fatal("nothing printed")
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	machine, err := Parse(machineText())
	if err != nil {
		b.Fatal(err)
	}
	job, err := Parse(jobText)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := Match(job, machine, nil); !r.Matched || r.LeftRank != 64000 {
			b.Fatalf("%+v", r)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	machine, err := Parse(machineText())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if n, ok := machine.Int("memory"); !ok || n != 64000 {
			b.Fatal(n)
		}
	}
}
