package roost

import "fmt"

// maxMetricName bounds the name of a metric, in bytes.
const maxMetricName = 200

// CheckMetricName refuses what is no name of a metric (the data model of Prometheus).
func CheckMetricName(name string) error {
	for i, c := range name {
		letter := c == '_' || c == ':' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%w: %q is no name of a metric: write letters, digits, underscores and colons only",
				Invalid, name)
		}
	}
	if name == "" || len(name) > maxMetricName {
		return fmt.Errorf("%w: a name of a metric has 1 to %d characters", Invalid, maxMetricName)
	}
	return nil
}
