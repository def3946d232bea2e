/* lat_queue: see queue.h for ownership, threads and the lock. */
#include "scheduler/queue.h"

bool lat_queue_init(lat_queue *q, size_t max_weight)
{
	*q = (lat_queue){.max_weight = max_weight};
	if (pthread_mutex_init(&q->lock, NULL) != 0)
		return false;
	if (pthread_cond_init(&q->changed, NULL) == 0)
		return true;
	pthread_mutex_destroy(&q->lock);
	return false;
}

void lat_queue_destroy(lat_queue *q)
{
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}

static void append(lat_queue *q, lat_queue_item *item, size_t weight)
{
	*item = (lat_queue_item){.prev = q->last, .next = NULL, .weight = weight, .queued = true};
	if (q->last)
		q->last->next = item;
	else
		q->first = item;
	q->last = item;
	q->weight += weight;
}

static void unlink_item(lat_queue *q, lat_queue_item *item)
{
	if (item->prev)
		item->prev->next = item->next;
	else
		q->first = item->next;
	if (item->next)
		item->next->prev = item->prev;
	else
		q->last = item->prev;
	item->queued = false;
	q->weight -= item->weight;
}

lat_status lat_queue_push(lat_queue *q, lat_queue_item *item, size_t weight)
{
	lat_status status = LAT_OK;
	pthread_mutex_lock(&q->lock);
	if (q->closed) {
		status = LAT_E_CLOSED;
	} else if (q->first && (weight > q->max_weight || q->weight > q->max_weight - weight)) {
		status = LAT_E_LIMIT;
	} else {
		append(q, item, weight);
		pthread_cond_signal(&q->changed);
	}
	pthread_mutex_unlock(&q->lock);
	return status;
}

static void wait_for_items(lat_queue *q)
{
	while (!q->first && !q->closed)
		pthread_cond_wait(&q->changed, &q->lock);
}

lat_queue_item *lat_queue_pop(lat_queue *q)
{
	pthread_mutex_lock(&q->lock);
	wait_for_items(q);
	lat_queue_item *item = q->first;
	if (item)
		unlink_item(q, item);
	pthread_mutex_unlock(&q->lock);
	return item;
}

lat_queue_item *lat_queue_take_all(lat_queue *q)
{
	pthread_mutex_lock(&q->lock);
	wait_for_items(q);
	lat_queue_item *all = q->first;
	for (lat_queue_item *item = all; item; item = item->next)
		item->queued = false;
	q->first = q->last = NULL;
	q->weight = 0;
	pthread_mutex_unlock(&q->lock);
	return all;
}

bool lat_queue_remove(lat_queue *q, lat_queue_item *item)
{
	pthread_mutex_lock(&q->lock);
	bool was_there = item->queued;
	if (was_there)
		unlink_item(q, item);
	pthread_mutex_unlock(&q->lock);
	return was_there;
}

void lat_queue_close(lat_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}
