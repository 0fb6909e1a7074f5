/*
 * Waiting for jobs. Threads that wait say what for and sleep on library_changed. One
 * thread of the session asks the pool about these jobs, and again whenever "roost wait"
 * prints that something has changed about them.
 *
 * Asking for each change would be the simple way. For an array of 10,000 tasks that is
 * 10,000 answers of 10,000 records each; so the next question waits ten times as long as
 * the last one took.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "roost_drmaa.h"

#define SHORTEST_PAUSE 0.02
#define LONGEST_PAUSE 5.0
#define UNFOLLOWED_PAUSE 0.5 /* where roost wait does not follow the jobs */
#define WHOLE_JOB 16 /* tasks of one job are asked for one by one up to here */
#define MOST_WATCHED 20000

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct timespec instant(double seconds)
{
	return (struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
}

static bool is_wanted(const struct job *j)
{
	return j->phase == PHASE_LIVE && (j->interest > 0 || (j->ours && session.any_interest > 0));
}

static bool same_parent(const struct job *a, const struct job *b)
{
	return a->parent_size == b->parent_size && memcmp(a->id, b->id, a->parent_size) == 0;
}

/* add_parent adds the id of the job that a task belongs to. */
static bool add_parent(struct list *ids, const struct job *j)
{
	const char *close = j->id[j->parent_size] == '[' ? strchr(j->id, ']') : NULL;
	struct text t = {0};
	text_add_bytes(&t, j->id, j->parent_size);
	text_add(&t, close != NULL ? close + 1 : j->id + j->parent_size);
	bool added = !t.failed && list_add(ids, t.data);
	text_free(&t);
	return added;
}

/* list_wanted lists what to ask for, and the jobs to follow. library_lock is held. */
static bool list_wanted(struct list *ids, struct list *parents)
{
	for (size_t i = 0, end; i < session.count; i = end) {
		struct job *first = session.jobs[i];
		size_t wanted = 0;
		for (end = i; end < session.count && same_parent(first, session.jobs[end]); end++)
			wanted += is_wanted(session.jobs[end]);
		if (wanted == 0)
			continue;
		if (parents->count < MOST_WATCHED && !add_parent(parents, first))
			return false;
		if (wanted > WHOLE_JOB) {
			if (!add_parent(ids, first))
				return false;
			continue;
		}
		for (size_t k = i; k < end; k++)
			if (is_wanted(session.jobs[k]) && !list_add(ids, session.jobs[k]->id))
				return false;
	}
	return true;
}

/* follow starts "roost wait" for jobs. NULL: the pool is asked from time to time only. */
static struct call *follow(const struct list *parents)
{
	const char **arguments = calloc(parents->count + 4, sizeof *arguments);
	int number;
	struct diagnosis nobody = {0};
	if (arguments == NULL)
		return NULL;
	arguments[0] = "wait";
	arguments[1] = "--json";
	arguments[2] = "--";
	for (size_t i = 0; i < parents->count; i++)
		arguments[3 + i] = parents->items[i];
	struct call *c = call_start(arguments, NULL, &number, nobody);
	free(arguments);
	return c;
}

static bool same_list(const struct list *a, const struct list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

/* pause_until sleeps until an instant, or until the session ends. */
static void pause_until(double end)
{
	struct timespec until = instant(end);
	while (!session.closing && pthread_cond_timedwait(&library_changed, &library_lock, &until) != ETIMEDOUT)
		;
}

/* await_change sleeps until something has changed since a question was asked. */
static void await_change(const struct call *c, size_t answers, unsigned long generation, double latest)
{
	struct timespec until = instant(latest);
	while (!session.closing && session.generation == generation && (c == NULL || (!c->done && c->answers == answers)))
		if (pthread_cond_timedwait(&library_changed, &library_lock, &until) == ETIMEDOUT)
			return;
}

static void *watch(void *argument)
{
	struct call *call = NULL;
	struct list followed = {0};
	(void)argument;
	pthread_mutex_lock(&library_lock);
	while (!session.closing) {
		struct list ids = {0}, parents = {0};
		unsigned long generation = session.generation;
		bool listed = list_wanted(&ids, &parents);
		if (listed && ids.count == 0) {
			pthread_cond_wait(&library_changed, &library_lock);
			continue;
		}
		bool over = call == NULL || call->done || !same_list(&parents, &followed);
		pthread_mutex_unlock(&library_lock);
		if (over && call != NULL)
			call_end(call);
		if (over) {
			list_free(&followed);
			followed = parents;
			parents = (struct list){0};
			call = listed ? follow(&followed) : NULL;
		}
		pthread_mutex_lock(&library_lock);
		size_t answers = call != NULL ? call->answers : 0;
		bool following = call != NULL && !call->done;
		if (call != NULL)
			call->output.size = 0; /* that there was some is all that counts */
		pthread_mutex_unlock(&library_lock);
		double began = now();
		int number = listed ? refresh(&ids, NULL, (struct diagnosis){0}) : DRMAA_ERRNO_NO_MEMORY;
		double took = now() - began, pause = took * 10;
		if (pause < SHORTEST_PAUSE)
			pause = SHORTEST_PAUSE;
		if (pause > LONGEST_PAUSE || number == DRMAA_ERRNO_NO_MEMORY)
			pause = LONGEST_PAUSE;
		if (number == DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE)
			pause = 1;
		list_free(&ids);
		list_free(&parents);
		pthread_mutex_lock(&library_lock);
		if (!following && pause < UNFOLLOWED_PAUSE)
			pause = UNFOLLOWED_PAUSE;
		await_change(following ? call : NULL, answers, generation, now() + (following ? 30 : pause));
		pause_until(began + took + pause);
	}
	pthread_mutex_unlock(&library_lock);
	if (call != NULL)
		call_end(call);
	list_free(&followed);
	return NULL;
}

bool watch_start(void)
{
	if (session.watching)
		return true;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	session.watching = pthread_create(&session.watcher, NULL, watch, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return session.watching;
}

/* await_until waits for a condition with a timeout of DRMAA. library_lock is held. */
static int await(bool (*is_true)(void *), void *of, signed long timeout, struct diagnosis d)
{
	struct timespec until = instant(now() + (timeout > 0 ? (double)timeout : 0));
	while (!is_true(of)) {
		if (session.closing)
			return fail(d, DRMAA_ERRNO_NO_ACTIVE_SESSION, "the session was ended while a job was waited for");
		if (timeout == DRMAA_TIMEOUT_NO_WAIT)
			return fail(d, DRMAA_ERRNO_EXIT_TIMEOUT, NULL);
		if (!watch_start())
			return fail(d, DRMAA_ERRNO_INTERNAL_ERROR, "there can be no further thread");
		if (timeout == DRMAA_TIMEOUT_WAIT_FOREVER)
			pthread_cond_wait(&library_changed, &library_lock);
		else if (pthread_cond_timedwait(&library_changed, &library_lock, &until) == ETIMEDOUT && !is_true(of))
			return fail(d, DRMAA_ERRNO_EXIT_TIMEOUT, NULL);
	}
	return DRMAA_ERRNO_SUCCESS;
}

static bool job_has_ended(void *of) { return ((struct job *)of)->phase != PHASE_LIVE; }

static bool any_has_ended(void *of)
{
	size_t ours = 0;
	(void)of;
	if (session.first_ended != NULL)
		return true;
	for (size_t i = 0; i < session.count && ours == 0; i++)
		ours += session.jobs[i]->ours && session.jobs[i]->phase == PHASE_LIVE;
	return ours == 0;
}

/* ask_now asks for jobs for a call that does not wait. library_lock is held, and given
 * up meanwhile. */
static int ask_now(struct job *const *jobs, size_t count, struct diagnosis d)
{
	struct list ids = {0};
	bool listed = true;
	for (size_t i = 0; i < count && listed; i++)
		if (jobs[i]->phase == PHASE_LIVE)
			listed = list_add(&ids, jobs[i]->id);
	int number = listed ? DRMAA_ERRNO_SUCCESS : fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	if (listed && ids.count > 0) {
		pthread_mutex_unlock(&library_lock);
		number = refresh(&ids, NULL, d);
		pthread_mutex_lock(&library_lock);
	}
	list_free(&ids);
	return number == DRMAA_ERRNO_INVALID_JOB ? DRMAA_ERRNO_SUCCESS : number;
}

/* named_job returns the job of an id, which may be one of another session. */
static struct job *named_job(const char *id, int *number, struct diagnosis d)
{
	struct job *j = session_find(id);
	if (id[0] < '0' || id[0] > '9' || strpbrk(id, " \t\n,*@") != NULL || strlen(id) > 200) {
		*number = fail(d, DRMAA_ERRNO_INVALID_JOB, "\"%.100s\" is no id of a job", id);
		return NULL;
	}
	if (j == NULL && (j = session_add(id, false)) == NULL)
		*number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	if (j != NULL && j->phase == PHASE_REAPED) {
		*number = fail(d, DRMAA_ERRNO_INVALID_JOB, "%s was waited for before", id);
		return NULL;
	}
	return j;
}

static int wait_for_job(struct job *j, signed long timeout, struct diagnosis d)
{
	int number = DRMAA_ERRNO_SUCCESS;
	if (timeout == DRMAA_TIMEOUT_NO_WAIT && (number = ask_now(&j, 1, d)) != DRMAA_ERRNO_SUCCESS)
		return number;
	j->interest++;
	session.generation++;
	pthread_cond_broadcast(&library_changed);
	number = await(job_has_ended, j, timeout, d);
	j->interest--;
	return number;
}

static int wait_for_any(signed long timeout, struct diagnosis d)
{
	int number = DRMAA_ERRNO_SUCCESS;
	if (timeout == DRMAA_TIMEOUT_NO_WAIT && session.first_ended == NULL &&
		(number = ask_now(session.jobs, session.count, d)) != DRMAA_ERRNO_SUCCESS)
		return number;
	session.any_interest++;
	session.generation++;
	pthread_cond_broadcast(&library_changed);
	number = await(any_has_ended, NULL, timeout, d);
	session.any_interest--;
	return number;
}

/* give_result hands out what is known of a job that has ended, and forgets it. */
static int give_result(struct job *j, char *job_id_out, size_t job_id_out_len, int *stat, drmaa_attr_values_t **rusage,
	struct diagnosis d)
{
	if (j->phase != PHASE_ENDED)
		return fail(d, DRMAA_ERRNO_INVALID_JOB, "%s: %s", j->id, j->phase == PHASE_REAPED ?
			"another thread has waited for it" : "the pool does not know it any more");
	drmaa_attr_values_t *values = NULL;
	if (rusage != NULL && (values = calloc(1, sizeof *values)) == NULL)
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	copy_text(job_id_out, job_id_out_len, j->id);
	if (stat != NULL)
		*stat = j->stat;
	if (rusage != NULL) {
		values->list = j->usage;
		j->usage = (struct list){0};
		*rusage = values;
	}
	session_reap(j);
	pthread_cond_broadcast(&library_changed);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_wait(const char *job_id, char *job_id_out, size_t job_id_out_len, int *stat, signed long timeout,
	drmaa_attr_values_t **rusage, char *error_diagnosis, size_t error_diag_len)
{
	struct diagnosis d = DIAGNOSIS;
	if (rusage != NULL)
		*rusage = NULL;
	if (job_id == NULL || timeout < DRMAA_TIMEOUT_WAIT_FOREVER)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_enter(d);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	struct job *j = NULL;
	if (strcmp(job_id, DRMAA_JOB_IDS_SESSION_ANY) == 0) {
		number = wait_for_any(timeout, d);
		if (number == DRMAA_ERRNO_SUCCESS && (j = session.first_ended) == NULL)
			number = fail(d, DRMAA_ERRNO_INVALID_JOB, "the session has no job that was not waited for");
	} else if ((j = named_job(job_id, &number, d)) != NULL) {
		number = wait_for_job(j, timeout, d);
	}
	if (number == DRMAA_ERRNO_SUCCESS && j != NULL)
		number = give_result(j, job_id_out, job_id_out_len, stat, rusage, d);
	session_leave();
	return number;
}

/* Jobs that a thread synchronizes with. */
struct waited {
	struct job **jobs;
	size_t count, open; /* jobs in front of open have ended */
};

static bool all_have_ended(void *of)
{
	struct waited *w = of;
	while (w->open < w->count && w->jobs[w->open]->phase != PHASE_LIVE)
		w->open++;
	return w->open == w->count;
}

/* list_waited lists what the ids of drmaa_synchronize name. */
static int list_waited(struct waited *w, const char *const *ids, struct diagnosis d)
{
	size_t named = 0;
	bool all = false;
	int number = DRMAA_ERRNO_SUCCESS;
	for (; ids[named] != NULL; named++)
		all = all || strcmp(ids[named], DRMAA_JOB_IDS_SESSION_ALL) == 0;
	w->jobs = calloc(named + session.count + 1, sizeof *w->jobs);
	if (w->jobs == NULL)
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	for (size_t i = 0; all && i < session.count; i++) {
		struct job *j = session.jobs[i];
		if (j->ours && (j->phase == PHASE_LIVE || j->phase == PHASE_ENDED))
			w->jobs[w->count++] = j;
	}
	for (size_t i = 0; !all && i < named; i++) {
		struct job *j = named_job(ids[i], &number, d);
		if (j == NULL)
			return number;
		w->jobs[w->count++] = j;
	}
	return number;
}

int drmaa_synchronize(const char *job_ids[], signed long timeout, int dispose, char *error_diagnosis,
	size_t error_diag_len)
{
	struct diagnosis d = DIAGNOSIS;
	struct waited w = {0};
	if (job_ids == NULL || timeout < DRMAA_TIMEOUT_WAIT_FOREVER)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_enter(d);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	number = list_waited(&w, (const char *const *)job_ids, d);
	if (number == DRMAA_ERRNO_SUCCESS && timeout == DRMAA_TIMEOUT_NO_WAIT)
		number = ask_now(w.jobs, w.count, d);
	if (number == DRMAA_ERRNO_SUCCESS) {
		for (size_t i = 0; i < w.count; i++)
			w.jobs[i]->interest++;
		session.generation++;
		pthread_cond_broadcast(&library_changed);
		number = await(all_have_ended, &w, timeout, d);
		for (size_t i = 0; i < w.count; i++)
			w.jobs[i]->interest--;
	}
	for (size_t i = 0; number == DRMAA_ERRNO_SUCCESS && i < w.count; i++)
		if (w.jobs[i]->phase == PHASE_UNKNOWN)
			number = fail(d, DRMAA_ERRNO_INVALID_JOB, "%s: there is no such job", w.jobs[i]->id);
	for (size_t i = 0; number == DRMAA_ERRNO_SUCCESS && dispose && i < w.count; i++)
		session_reap(w.jobs[i]);
	free(w.jobs);
	session_leave();
	return number;
}
