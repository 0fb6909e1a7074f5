#!/bin/sh
# lyapunov.sh R prints R and the mean of ln |R (1 - 2x)| along an orbit of the logistic
# map, once it has settled.
exec awk -v r="$1" -v node="${ROOST_NODE:--}" 'BEGIN {
	x = 0.4
	for (i = 0; i < 1000; i++) x = r * x * (1 - x)
	n = 400000
	for (i = 0; i < n; i++) {
		x = r * x * (1 - x)
		d = r * (1 - 2 * x)
		if (d < 0) d = -d
		sum += log(d > 1e-300 ? d : 1e-300)
	}
	printf "%.4f %.6f %s\n", r, sum / n, node
}'
