package config

import "fmt"

// QueueChoice says which queue takes the jobs that users submit on a node.
type QueueChoice string

// The choices. Without one batch goes to the queue of the host, and services to that of
// the cell if the pool has one.
const (
	SubmitToCell QueueChoice = "cell"
	SubmitToHost QueueChoice = "local"
)

func parseQueueChoice(text string) (QueueChoice, error) {
	switch c := QueueChoice(text); c {
	case SubmitToCell, SubmitToHost:
		return c, nil
	}
	return "", fmt.Errorf("it is %q, and can be %q for the queue of the cell or %q for that of this host", text,
		SubmitToCell, SubmitToHost)
}
