"""Make the forkserver that workers are forked from ignore what is sent to all of a job.

Only the forkserver imports this module. A batch system sends SIGTERM or SIGUSR1 to every process of
a job, and a terminal that is closed SIGHUP. If the forkserver died of one, every worker would look
dead to the training, which needs the workers to save the run. Processes forked from the server get
the handlers back that it had, and our workers then set their own.

Ctrl-C reaches them all as well. The server itself ignores it anyway; what is forked from it does so
too, since a worker that has just begun would end with a traceback.
"""

from game_rl.system.processes import ignore_signals, ignore_signals_here_alone

ignore_signals_here_alone("SIGTERM", "SIGHUP", "SIGUSR1")
ignore_signals("SIGINT")  # multiprocessing gives this to what it forks
