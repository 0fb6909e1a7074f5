package classad_test

import (
	"fmt"

	"github.com/roost-batch/roost/classad"
)

func ExampleReasons() {
	job, err := classad.Parse(
		`[ RequestMemory = 8000; Requirements = TARGET.Memory >= RequestMemory && TARGET.Arch == "X86_64" ]`,
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	machine, err := classad.Parse(
		`[ Memory = 1000; Arch = "x86_64"; Idle = false; Start = Idle && TARGET.Owner != "bob"; Requirements = Start ]`,
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range classad.Reasons(job, machine, nil) {
		fmt.Printf("%s, %s: %s is %s\n", r.Side, r.Attribute, r.Conjunct, r.Value)
		for _, o := range r.Operands {
			fmt.Printf("  %s is %s\n", o.Expr, o.Value)
		}
	}
	// Output:
	// left, Requirements: TARGET.Memory >= RequestMemory is false
	//   TARGET.Memory is 1000
	//   RequestMemory is 8000
	// right, Start: Idle is false
	//   Idle is false
	// right, Start: TARGET.Owner != "bob" is undefined
	//   TARGET.Owner is undefined
}
