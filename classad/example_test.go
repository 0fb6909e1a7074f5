package classad_test

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/classad"
)

func Example() {
	machine, err := classad.Parse(`[ Memory = 64000; Arch = "X86_64"; Requirements = TARGET.RequestMemory <= Memory ]`)
	if err != nil {
		fmt.Println(err)
		return
	}
	job := classad.New()
	job.SetInt("RequestMemory", 8000)
	if err := job.SetExpr("Requirements", `TARGET.Arch == "x86_64" && TARGET.Memory >= RequestMemory`); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(classad.Match(job, machine, nil).Matched)
	// Output: true
}

func ExampleParseExpr() {
	_, err := classad.ParseExpr("Memory >= 64 &&\n  Arch ==")
	fmt.Println(err)
	// Output: classad: line 2, column 10: expected an expression, but the text ends here
}

func ExampleEval() {
	e, err := classad.ParseExpr(`{ Memory / 2, TARGET.Gpus, interval(time() - 1000000000) }`)
	if err != nil {
		fmt.Println(err)
		return
	}
	my := classad.New()
	my.SetInt("Memory", 64)
	env := &classad.EvalEnv{Now: time.Unix(1000003600, 0)}
	elems, _ := classad.Eval(e, my, nil, env).Elements(env)
	fmt.Println(elems)
	// Output: [32 undefined "1:00:00"]
}

func ExampleConjuncts() {
	e, err := classad.ParseExpr(`(TARGET.Memory >= 64 && Arch == "X86_64") && (a || b)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range classad.Conjuncts(e) {
		my, target, unscoped := classad.References(c)
		fmt.Println(c, my, target, unscoped)
	}
	// Output:
	// TARGET.Memory >= 64 [] [Memory] []
	// Arch == "X86_64" [] [] [Arch]
	// a || b [] [] [a b]
}

func ExampleAd_Old() {
	ad := classad.New()
	ad.SetString("Cmd", "/bin/true")
	ad.SetReal("RequestCpus", 1.5)
	ad.SetStrings("Arguments", []string{"-v", "x y"})
	fmt.Print(ad.Old())
	// Output:
	// Cmd = "/bin/true"
	// RequestCpus = 1.5
	// Arguments = { "-v","x y" }
}
