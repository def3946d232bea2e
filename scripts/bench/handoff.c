/* A bare round trip between two threads: handoff N. Prints microseconds for one, over a mutex and two conditions. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	long question, answer; /* an answer equals its question when it is there */
	long rounds;
} post_box;

static void *serve(void *arg)
{
	post_box *box = arg;
	pthread_mutex_lock(&box->lock);
	for (long i = 1; i <= box->rounds; i++) {
		while (box->question != i)
			pthread_cond_wait(&box->asked, &box->lock);
		box->answer = i;
		pthread_cond_signal(&box->answered);
	}
	pthread_mutex_unlock(&box->lock);
	return NULL;
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	post_box box = {.rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000};
	pthread_mutex_init(&box.lock, NULL);
	pthread_cond_init(&box.asked, NULL);
	pthread_cond_init(&box.answered, NULL);
	pthread_t thread;
	if (pthread_create(&thread, NULL, serve, &box) != 0)
		return 1;
	double began = now_us();
	pthread_mutex_lock(&box.lock);
	for (long i = 1; i <= box.rounds; i++) {
		box.question = i;
		pthread_cond_signal(&box.asked);
		while (box.answer != i)
			pthread_cond_wait(&box.answered, &box.lock);
	}
	pthread_mutex_unlock(&box.lock);
	double took = now_us() - began;
	pthread_join(thread, NULL);
	printf("%.3f\n", took / (double)box.rounds);
	return 0;
}
