package cgroup

import (
	"testing"

	"github.com/roost-batch/roost"
)

func TestKernelLog(t *testing.T) {
	const group = "/roost/n1/7"
	const killed = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=7,mems_allowed=0,oom_memcg="
	const rest = " total-vm:70000kB, anon-rss:65536kB, file-rss:1200kB, shmem-rss:1024kB, UID:1000 pgtables:180kB " +
		"oom_score_adj:0"
	tests := []struct {
		name  string
		lines []string
		want  OOMEvent
	}{
		{"one", []string{killed + group + ",task_memcg=" + group + ",task=python3,pid=42,uid=1000",
			"Memory cgroup out of memory: Killed process 42 (python3)" + rest},
			OOMEvent{Process: "python3", PID: 42, ProcessRSS: 66560 * roost.KiB}},
		{"of a container's host", []string{killed + "/docker/x" + group + ",task_memcg=/docker/x" + group +
			",task=a,pid=42,uid=1000"}, OOMEvent{Process: "a", PID: 42}},
		{"in a leaf", []string{killed + group + "/task,task_memcg=" + group + "/task,task=a,pid=42,uid=1000"},
			OOMEvent{Process: "a", PID: 42}},
		{"another's", []string{killed + "/roost/n1/77,task_memcg=/roost/n1/77,task=a,pid=42,uid=0",
			"Memory cgroup out of memory: Killed process 42 (a)" + rest}, OOMEvent{}},
		{"the last counts", []string{killed + group + ",task_memcg=" + group + ",task=a,pid=42,uid=0",
			killed + group + ",task_memcg=" + group + ",task=b,pid=43,uid=0"},
			OOMEvent{Process: "b", PID: 43}},
		{"a name that lies", []string{killed + group + ",task_memcg=" + group + ",task=x,pid=1,uid=0,pid=42,uid=1000"},
			OOMEvent{Process: "x,pid=1,uid=0", PID: 42}},
		{"a name that is a group", []string{killed + "/other,task_memcg=/other,task=,task_memcg=" + group +
			",pid=42,uid=1000"}, OOMEvent{}},
		{"broken", []string{"oom-kill:", killed, killed + group, killed + group + ",task_memcg=x,task=y",
			killed + group + ",task_memcg=x,task=y,pid=z"}, OOMEvent{}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var got OOMEvent
			for _, line := range c.lines {
				parseOOMRecord(line, group, &got)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
