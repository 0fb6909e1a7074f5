package submit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// columnsText shows columns as in "n=1,2".
func columnsText(j Job) string {
	var all []string
	for _, c := range j.Columns {
		all = append(all, c.Name+"="+strings.Join(c.Values, ","))
	}
	return strings.Join(all, " ")
}

// TestItemTable checks a job whose items its caller gives.
func TestItemTable(t *testing.T) {
	const text = `job "x" {
  command = ["echo", each.value.n, "${each.value.n + 1}", "${task.index}", each.value.later, "${task.count}"]
  memory  = each.value.m
}`
	items := &jobspec.ItemTable{Rows: 4, Deferred: []string{"later"}}
	items.Add("n", []string{"1", "2", "3", "4"})
	items.Add("m", []string{"1G", "1G", "2G", "2G"})
	for jobs, want := range map[int]string{0: `{ "$(n)","$(computed)","$(TaskIndex)","$(later)","4" } 4`,
		4: `{ "$(n)","$(computed)","$(TaskIndex)","$(later)","1" } 1`} {
		items.Jobs = jobs
		list, diags := ParseFile([]byte(text),
			ParseOptions{Dir: "/d", Items: map[string]*jobspec.ItemTable{"x": items}})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		args, _ := list[0].Ad.Lookup(roost.AttrArguments)
		tasks, _ := list[0].Ad.Int(roost.AttrTaskCount)
		if got := fmt.Sprint(args.String(), " ", tasks); got != want {
			t.Errorf("%d jobs: %s, want %s", jobs, got, want)
		}
		const columns = "n=1,2,3,4 computed=2,3,4,5 RequestMemory=1073741824,1073741824,2147483648,2147483648"
		if got := columnsText(list[0]); got != columns {
			t.Errorf("%d jobs: %s, want %s", jobs, got, columns)
		}
	}
	for text, want := range map[string]string{
		`job "x" { command = ["echo", each.value.other] }`:        "the items do not have this",
		"job \"x\" {\n count = 2\n command = [\"echo\"]\n}":       "the tasks of this job come from the command line",
		`job "x" { command = ["echo", upper(each.value.later)] }`: "later cannot be used here",
	} {
		_, diags := ParseFile([]byte(text),
			ParseOptions{Dir: "/d", Items: map[string]*jobspec.ItemTable{"x": items}})
		if !strings.Contains(diags.Error(), want) {
			t.Errorf("%s: %v, want %s", text, diags, want)
		}
	}
}

// TestJobVariables checks variables that differ between the jobs of a file.
func TestJobVariables(t *testing.T) {
	table := &jobspec.ItemTable{Rows: 2, Label: func(job int) string { return fmt.Sprintf("node %d", job) }}
	table.Add("n", []string{"5", "6"})
	table.Add("same", []string{"2", "2"})
	const text = `variable "n" { type = number }
variable "same" { type = number }
job "x" {
  count   = var.same
  command = ["echo", "${var.n}", "${task.index + var.n}"]
  override {
    tasks  = [1]
    memory = "1GiB"
  }
}`
	jobs, diags := ParseFile([]byte(text), ParseOptions{Dir: "/d", Variables: table})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := "computed=5,5,6,6 computed2=5,6,6,7 RequestMemory=268435456,1073741824,268435456,1073741824"
	if got := columnsText(jobs[0]); got != want || jobs[0].Count != 4 {
		t.Errorf("%d tasks, %s, want %s", jobs[0].Count, got, want)
	}
	_, diags = ParseFile([]byte(strings.Replace(text, "count   = var.same", "count = var.n", 1)),
		ParseOptions{Dir: "/d", Variables: table})
	if got := NeededVariables(diags); len(got) != 1 || got[0] != "n" {
		t.Errorf("%q are needed, want n: %v", got, diags)
	}
	table.Columns[0][1] = "six"
	if _, diags = ParseFile([]byte(text), ParseOptions{Dir: "/d", Variables: table}); !diags.HasErrors() {
		t.Error("six is a number")
	}
}
