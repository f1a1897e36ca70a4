/** The job that a simulation is about. */
export const JOB = "job";
