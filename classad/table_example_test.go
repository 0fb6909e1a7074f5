package classad_test

import (
	"fmt"

	"github.com/roost-batch/roost/classad"
)

// ExampleTable stores the machines of a pool in a table and finds those on which a job
// can run.
func ExampleTable() {
	pool := classad.NewTable(classad.TableOptions{})
	names := map[classad.RowID]string{}
	for _, text := range []string{
		`[ Name = "small"; Memory = 4000; Requirements = TARGET.RequestMemory <= Memory ]`,
		`[ Name = "large"; Memory = 64000; Requirements = TARGET.RequestMemory <= Memory ]`,
		`[ Name = "private"; Memory = 64000; Requirements = TARGET.Owner == "bob" ]`,
	} {
		machine, err := classad.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		row := pool.Add(machine)
		names[row], _ = machine.Str("Name")
	}
	job, err := classad.Parse(
		`[ Owner = "anna"; RequestMemory = 8000; Requirements = TARGET.Memory >= RequestMemory; Rank = TARGET.Memory / 1000.0 ]`,
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hit := range pool.Compile(job).Select(nil, nil) {
		fmt.Println(names[hit.Row], hit.Rank)
	}
	// Output: large 64
}

// ExampleQuery_Explain counts, conjunct by conjunct, the machines that a job cannot use.
func ExampleQuery_Explain() {
	pool := classad.NewTable(classad.TableOptions{MatchAllByDefault: true})
	for _, text := range []string{
		`[ Arch = "X86_64"; Memory = 16000 ]`,
		`[ Arch = "X86_64"; Memory = 64000 ]`,
		`[ Arch = "aarch64"; Memory = 256000 ]`,
		`[ Arch = "aarch64" ]`,
	} {
		machine, err := classad.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		pool.Add(machine)
	}
	job, err := classad.Parse(
		`[ RequestMemory = 100000; Requirements = TARGET.Arch == "X86_64" && TARGET.Memory >= RequestMemory ]`,
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	why := pool.Compile(job).Explain(nil)
	fmt.Println(why.Matched, "of", why.Rows)
	for i, c := range why.Conjuncts {
		fmt.Printf("%d %s: true %d, false %d, undefined %d\n", i, c.Substituted, c.Pass, c.Fail, c.Undefined)
	}
	c := why.Conjuncts[why.MostExcluding]
	fmt.Printf("%d would do but for %s; the best of them has %s\n", c.OnlyObstacle, c.Expr, c.BestValue)
	fmt.Println("no machine meets", why.Conflicts[0].Conjuncts, "together")
	// Output:
	// 0 of 4
	// 0 TARGET.Arch == "X86_64": true 2, false 2, undefined 0
	// 1 TARGET.Memory >= 100000: true 1, false 2, undefined 1
	// 2 would do but for TARGET.Memory >= RequestMemory; the best of them has 64000
	// no machine meets [0 1] together
}
