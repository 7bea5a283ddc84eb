"""What is done to jobs: taken in, started, launched, ended, held, requeued, suspended,
preempted.
"""
