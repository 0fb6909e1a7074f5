package packing

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

const nodeHeader = "sn,cpu_milli,memory_mib,gpu,model\n"

// TestRefused checks that a malformed list is refused with its place and reason.
func TestRefused(t *testing.T) {
	nodes := func(text string) error { _, err := ReadNodes("n.csv", strings.NewReader(text)); return err }
	pods := func(text string) error { _, err := ReadPods("p.csv", strings.NewReader(text)); return err }
	const podHead = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
	for _, test := range []struct {
		read       func(string) error
		text, want string
	}{
		{nodes, "", "n.csv: line 1: invalid request: the file is empty"},
		{nodes, nodeHeader, "n.csv: line 2: invalid request: there is nothing below the first line"},
		{nodes, "sn,cpu_milli,memory_mib,gpu\na,1,1,0\n",
			"n.csv: line 1: invalid request: the column model is missing"},
		{nodes, "sn,cpu_mili,memory_mib,gpu,model\n",
			"n.csv: line 1: column 4 (cpu_mili): invalid request: there is no such column; did you mean cpu_milli?"},
		{nodes, "sn,cpu_milli,memory_mib,gpu,model,sn\n",
			"column 35 (sn): invalid request: there are two such columns"},
		{nodes, nodeHeader + "a,1000,1024,0,\nb,1000,10",
			"n.csv: line 3: invalid request: it has another number of columns than the first line, which has 5"},
		{nodes, nodeHeader + "a,1000,1024,0,\nb,1000,1024,8,V100M",
			"n.csv: line 3: invalid request: the file is cut off"},
		{nodes, nodeHeader + "a,1000,1024,0,\na,1000,1024,0,\n",
			"n.csv: line 3: column 1 (sn): invalid request: a is the name of line 2, too"},
		{nodes, nodeHeader + "a,many,1024,0,\n",
			`n.csv: line 2: column 3 (cpu_milli): invalid request: "many" is not a whole number`},
		{nodes, nodeHeader + "a,0,1024,0,\n",
			"column 3 (cpu_milli): invalid request: 0 is absurd: it is from 1 to 10000000"},
		{nodes, nodeHeader + "a,1000,99999999999999999999,0,\n",
			"column 8 (memory_mib): invalid request: 99999999999999999999 is absurd"},
		{nodes, nodeHeader + "a,1000,1024,-8,T4\n", "column 13 (gpu): invalid request: -8 is absurd"},
		{nodes, nodeHeader + "a,1000,1024,8,\n", "column 15 (model): invalid request: it is empty"},
		{nodes, nodeHeader + "a,1000,1024,8,\"T\"\"4\"\n", "characters that no name has"},
		{nodes, nodeHeader + "a,1000,10\"24,8,T4\n", "n.csv: line 2: column 10: invalid request: bare \""},
		{pods, nodeHeader,
			"p.csv: line 1: column 1 (sn): invalid request: there is no such column; there are name, cpu_milli"},
		{pods, podHead + "a,1000,1024,1,0,,LS\n",
			"(gpu_milli): invalid request: it asks for 1 GPUs, and for nothing of them"},
		{pods, podHead + "a,1000,1024,0,500,,LS\n", "it asks for 500 thousandths of no GPU"},
		{pods, podHead + "a,1000,1024,1,1001,,LS\n", "1001 is absurd: it is from 0 to 1000"},
		{pods, podHead + "a,0,0,0,0,,LS\n", "it asks for nothing"},
		{pods, podHead + "a,1000,1024,1,460,LS,\nb,1000,1024,1,460,V100||T4,LS\n",
			`p.csv: line 3: column 19 (gpu_spec): invalid request: "V100||T4" is not a list of models`},
		{pods, podHead + "a,1000,1024,1,460,,Running\n",
			`(qos): invalid request: "Running" is none of LS, BE, Burstable, Guaranteed`},
		{pods, podHead + "a,1000,1024,1,460,LS\n", "it has another number of columns than the first line, which has 7"},
	} {
		err := test.read(test.text)
		if err == nil || !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q:\ngot  %v\nwant %s", test.text, err, test.want)
		}
	}
}

// TestColumns checks that columns are found by name, and that only the demand of pods is
// mandatory.
func TestColumns(t *testing.T) {
	pods, err := ReadPods("p.csv",
		strings.NewReader("gpu_milli,num_gpu,memory_mib,cpu_milli,name\r\n460,1,2048,1500,a\r\n"))
	if err != nil || len(pods) != 1 || pods[0].CPU != 1500 || pods[0].Memory != 2*roost.GiB ||
		pods[0].GPUMilli != 460 || pods[0].GPUs != 1 || pods[0].Name != "a" {
		t.Fatalf("%+v, %v", pods, err)
	}
	nodes, err := ReadNodes("n.csv", strings.NewReader("\ufeff"+nodeHeader+"a,64500,262144,2,T4\n"))
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%+v, %v", nodes, err)
	}
	c, err := NewCell(nodes, pods)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Machines[0].Total,
		(roost.Resources{CPU: 64500, Memory: 256 * roost.GiB, Disk: roost.GiB, GPUs: 2}); got != want {
		t.Errorf("the machine has %v, want %v", got, want)
	}
}

func FuzzReadPods(f *testing.F) {
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1\n")
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time\na,1,1,1,1,T4|G2,LS,,7\n")
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := ReadPods("p", strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, roost.Invalid) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if _, err := NewCell([]TraceNode{{Name: "n", CPU: 1000, Memory: roost.GiB}}, pods); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
