package accounts

import (
	"encoding/json"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
)

func TestSnakeDocument(t *testing.T) {
	line := query.AttemptLine{}
	line.Job.Source, line.Job.UID, line.Attempt.UserCPU = accounting.SourceID{15: 7}, 5, 1<<60+1
	lines, err := document.SnakeDocument(&line)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Job struct {
			Source string `json:"source"`
			UID    int    `json:"uid"`
		} `json:"job"`
		Attempt struct {
			UserCPU int64 `json:"user_cpu"`
		} `json:"attempt"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Job.Source != line.Job.Source.String() ||
		got.Job.UID != 5 || got.Attempt.UserCPU != line.Attempt.UserCPU {
		t.Errorf("got %s, %v", text, err)
	}
}
